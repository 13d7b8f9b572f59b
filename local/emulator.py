"""ministack with patches for this project: `python -m local.emulator`, set by the environment.

ministack serves CloudFormation, Lambda, Step Functions and S3 on a laptop. In a few places that
this project needs it differs from AWS, so its source is patched while it is loaded. Each patch
fails with the name of the module if the text that it replaces is missing, as in a new version.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

VERSION = "1.5.33"

Mends = list[tuple[str, str]]

LAMBDA_RUNTIME: Mends = [
    # Retry and Catch use the class of an exception.
    (
        '"error": str(e), "trace": traceback.format_exc()}',
        '"error": str(e), "error_type": type(e).__name__, '
        '"stack": traceback.format_tb(e.__traceback__), "trace": traceback.format_exc()}',
    ),
    # The error that AWS reports for a process that exited or was killed.
    (
        '{"status": "error", "error": "Worker process died"}',
        '{"status": "error", "error": "RequestId: " + request_id + " Error: Runtime exited", '
        '"error_type": "Runtime.ExitError"}',
    ),
    # The same while it starts; the class's name becomes the error's.
    (
        'raise RuntimeError(f"Worker process exited immediately. stderr: {stderr_out}")',
        'raise type("Runtime.ExitError", (RuntimeError,), {})(f"Runtime exited: {stderr_out}")',
    ),
    # A process that hangs while it starts is ended after the function's time. ministack would wait
    # for it for ever; AWS gives a start 10 seconds, and then once more the function's time.
    (
        """        # Read init response, skipping non-JSON lines (stray console output from modules)
""",
        """        limit = threading.Timer(float(self.config.get("Timeout", 30)), self._proc.kill)
        limit.daemon = True
        limit.start()
        # Read init response, skipping non-JSON lines (stray console output from modules)
""",
    ),
    (
        """        self._start_time = time.time()
        logger.info("Lambda worker spawned for %s (%s, cold start)", self.func_name, runtime)
""",
        """        limit.cancel()
        self._start_time = time.time()
        logger.info("Lambda worker spawned for %s (%s, cold start)", self.func_name, runtime)
""",
    ),
    # Each worker unpacks code and layers for itself, and would compile them: three seconds, and a
    # thousand files that somebody has to delete. They are unpacked once, under a name by what is
    # in them.
    ("            zf.extractall(code_dir)\n", "            code_dir = _once(zf, self.code_zip)\n"),
    (
        "                            lzf.extractall(layer_dir)\n",
        "                            layer_dir = _once(lzf, layer_data)\n",
    ),
    (
        """# Python worker script (runs inside a persistent subprocess)
""",
        """_unpacking = threading.Lock()


def _once(archive, packed):
    import hashlib

    kept = os.path.join(tempfile.gettempdir(), hashlib.sha256(packed).hexdigest())
    with _unpacking:
        if not os.path.exists(kept):
            archive.extractall(kept + ".part")
            os.rename(kept + ".part", kept)
    return kept

# Python worker script (runs inside a persistent subprocess)
""",
    ),
    # Who calls is in the session, as on AWS, where it is that of the function's role.
    (
        '"AWS_SESSION_TOKEN": os.environ.get("AWS_SESSION_TOKEN", ""),',
        '"AWS_SESSION_TOKEN": config.get("FunctionName", ""),',
    ),
]

LAMBDA_SERVICE: Mends = [
    # The class of an exception and its traceback are in the answer of an invocation.
    (
        'error_type = "Runtime.HandlerError"',
        'error_type = result.get("error_type") or "Runtime.HandlerError"',
    ),
    (
        '"errorType": error_type,',
        '"errorType": error_type, "requestId": request_id, "stackTrace": result.get("stack", []),',
    ),
    # A mapping may have a stream of DynamoDB Local, whose region is "ddblocal". ministack's own
    # poller passes it over; local/stream_bridge.py carries its records.
    (
        """    scope_err = _require_same_account_region_arn(spec, event_source_arn, "event source")
""",
        """    scope_err = spec.region != "ddblocal" and _require_same_account_region_arn(
        spec, event_source_arn, "event source"
    )
""",
    ),
]

STEP_FUNCTIONS: Mends = [
    # A function with the tag "idle" answers a state once as one that was not used for weeks: Lambda
    # restores its code at that time.
    (
        """    exec_record = lambda_svc._execution_record_for_config(func, config)
    result = lambda_svc._execute_function_with_config_scope(exec_record, event)
""",
        """    if lambda_svc._functions.get(func_name)["tags"].pop("idle", None):
        raise _ExecutionError(
            "Lambda.CodeArtifactUserPendingException",
            "Lambda is initializing your function. It will be ready to invoke shortly. "
            "(Service: Lambda, Status Code: 409, Request ID: " + new_uuid() + ")",
        )
    exec_record = lambda_svc._execution_record_for_config(func, config)
    result = lambda_svc._execute_function_with_config_scope(exec_record, event)
""",
    ),
    # A map may read how many children run at once from its input.
    (
        'max_conc = int(state_def.get("MaxConcurrency") or 0)',
        'path = state_def.get("MaxConcurrencyPath")\n'
        "    given = _resolve_path_or_ctx(path, effective, ctx) if path else None\n"
        '    max_conc = int(given or state_def.get("MaxConcurrency") or 0)',
    ),
    # A map reads objects that are gzipped.
    (
        '    return body.decode("utf-8") if isinstance(body, (bytes, bytearray)) else str(body)\n',
        """    if key.endswith(".gz"):
        import gzip

        body = gzip.decompress(body)
    return body.decode("utf-8") if isinstance(body, (bytes, bytearray)) else str(body)
""",
    ),
    # UpdateMapRun changes what runs at once: nobody who runs is stopped, and nobody begins while
    # there are enough. A map that tolerates no failure begins no child after one has failed.
    (
        """    workers = max_conc if max_conc > 0 else (min(len(items), 64) or 1)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures_wait([pool.submit(contextvars.copy_context().run, run_child, i, item) """
        """for i, item in enumerate(items)])
""",
        """    turn = threading.Condition()
    at_once = [0]

    def run_in_turn(idx, item):
        with turn:
            while at_once[0] >= (run["maxConcurrency"] or 64):
                turn.wait(0.05)
            at_once[0] += 1
        try:
            if not limits_nothing or not any(failures):
                run_child(idx, item)
        finally:
            with turn:
                at_once[0] -= 1
                turn.notify_all()

    limits_nothing = tolerated_pct == 0 and tolerated_count == 0
    with ThreadPoolExecutor(max_workers=min(len(items), 64) or 1) as pool:
        futures_wait([pool.submit(contextvars.copy_context().run, run_in_turn, i, item) """
        """for i, item in enumerate(items)])
""",
    ),
    # An integration that ministack lacks: a Body that is not text is written as JSON.
    (
        """    # Generic aws-sdk:* service integration
""",
        """    if resource.endswith(":aws-sdk:s3:putObject"):
        from ministack.services import s3

        body = input_data["Body"]
        text = body if isinstance(body, str) else json.dumps(body)
        status, _, answer = s3._put_object(
            input_data["Bucket"], input_data["Key"], text.encode(), {}
        )
        if status != 200:
            raise _ExecutionError("S3.S3Exception", str(answer))
        return {}

""",
    ),
    # With the parameters of a task, which belong to the event.
    (
        """                    "resourceType": "lambda" if "lambda" in resource else "states",
                    "resource": resource,
""",
        """                    "resourceType": "lambda" if "lambda" in resource else "states",
                    "resource": resource,
                    "parameters": json.dumps(effective),
""",
    ),
    # How another execution has failed is in the cause, as JSON; the error is always the same.
    (
        'return decoded["Error"], decoded.get("Cause", "")',
        'return "States.TaskFailed", json.dumps({"ExecutionArn": payload.get("executionArn"), '
        '"Status": payload.get("status"), "Error": decoded["Error"], '
        '"Cause": decoded.get("Cause", "")})',
    ),
    # One that was stopped has neither.
    (
        'f"Nested execution {execution_arn} ended with status {status}"',
        'json.dumps({"ExecutionArn": execution_arn, "Status": status})',
    ),
    # A function that fails fails the task that waits for its token.
    (
        """            _call_lambda(func_ref, lambda_payload)
        except _ExecutionError:
            pass
""",
        """            _call_lambda(func_ref, lambda_payload)
        except _ExecutionError:
            _task_tokens.pop(token, None)
            raise
""",
    ),
    # ministack has no redrives; AWS says so in each execution's context.
    (
        """            "Name": execution["name"],
            "StartTime": execution["startDate"],
        },
        "StateMachine": {
            "Id": execution["stateMachineArn"],
            "Name": sm["name"],
        },
        # JSONata""",
        """            "Name": execution["name"],
            "StartTime": execution["startDate"],
            "RedriveCount": 0,
        },
        "StateMachine": {
            "Id": execution["stateMachineArn"],
            "Name": sm["name"],
        },
        # JSONata""",
    ),
]

MENDED: dict[str, Mends] = {
    "ministack.core.lambda_runtime": LAMBDA_RUNTIME,
    "ministack.services.lambda_svc": LAMBDA_SERVICE,
    "ministack.services.stepfunctions": STEP_FUNCTIONS,
}


def mended(name: str, source: str, mends: Mends) -> str:
    """Return `source` with all mends applied; exit with a sentence if one does not fit."""
    for old, new in mends:
        if source.count(old) != 1:
            raise SystemExit(
                f"{name} is not as in ministack {VERSION}: local/emulator.py must be adapted "
                f"to it. It lacks: {old.strip().splitlines()[0].strip()}"
            )
        source = source.replace(old, new)
    return source


def load(name: str, mends: Mends) -> ModuleType:
    """Import a module with its patches applied to its source."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit("ministack is not set up: run make setup.")
    source = mended(name, Path(spec.origin).read_text(encoding="utf-8"), mends)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)
    exec(compile(source, spec.origin, "exec"), module.__dict__)  # noqa: S102
    return module


def main() -> None:
    """Patch the emulator, and serve until the process is stopped."""
    for name, mends in MENDED.items():
        load(name, mends)
    from ministack.app import main as serve

    serve()


if __name__ == "__main__":
    main()
