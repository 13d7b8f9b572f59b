// Answers each line of standard input, a simulation as JSON, with a line: its result as JSON.
// Started as `node simulate.cjs FOLDER`, where FOLDER has the node_modules.
const { createInterface } = require('node:readline')
const { createRequire } = require('node:module')
const { runSimulation } = createRequire(`${process.argv[2]}/`)('@cloud-copilot/iam-simulate')

async function answer() {
  for await (const line of createInterface({ input: process.stdin })) {
    const found = await runSimulation(JSON.parse(line), {})
    // Of a `*` that stands for resources of a kind there are several results, one a pattern.
    const results = found.results ?? (found.result ? [found.result] : [])
    const statements = results.flatMap((one) => one.analysis.identityAnalysis?.allowStatements ?? [])
    console.log(JSON.stringify({
      allowed: found.overallResult === 'Allowed',
      error: found.errors ?? null,
      by: statements.map((one) => JSON.parse(JSON.stringify(one.statement)).Sid ?? ''),
      ignored: results.flatMap((one) => one.ignoredContextKeys ?? []),
    }))
  }
}

answer()
