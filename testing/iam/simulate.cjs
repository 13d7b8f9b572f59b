// Answers each line of standard input, a simulation as JSON, with a line: its result as JSON.
// Start it as `node simulate.cjs FOLDER`, where FOLDER has the node_modules.
const { createInterface } = require('node:readline')
const { createRequire } = require('node:module')
const { runSimulation } = createRequire(`${process.argv[2]}/`)('@cloud-copilot/iam-simulate')

async function answer() {
  for await (const line of createInterface({ input: process.stdin })) {
    const simulation = await runSimulation(JSON.parse(line), {})
    // A `*` for resources of a kind has several results, one for each pattern.
    const results = simulation.results ?? (simulation.result ? [simulation.result] : [])
    const statements = results.flatMap((result) => result.analysis.identityAnalysis?.allowStatements ?? [])
    console.log(JSON.stringify({
      allowed: simulation.overallResult === 'Allowed',
      error: simulation.errors ?? null,
      by: statements.map((entry) => JSON.parse(JSON.stringify(entry.statement)).Sid ?? ''),
      ignored: results.flatMap((result) => result.ignoredContextKeys ?? []),
    }))
  }
}

answer()
