// The processes and folders of a run, and how they are removed at its end, even after Ctrl-C or an error.
import { spawn } from 'node:child_process';
import { clearTimeout, setTimeout } from 'node:timers';

/** How long a process may take to stop before it is killed, in milliseconds. */
const END_MS = 5_000;

/** The steps that undo what the run made; the last one runs first. */
const undoings = [];
let isInterrupted = false;

/** @param undo is called and awaited once, when the run ends in any way. */
export function atEnd(undo) {
  undoings.push(undo);
}

export async function undoAll() {
  for (let undo = undoings.pop(); undo !== undefined; undo = undoings.pop()) {
    try {
      await undo();
    } catch (error) {
      console.error(`Could not clean up: ${error.message}`);
    }
  }
}

/** Runs the benchmark, and cleans up after it. */
export async function runToEnd(main) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, async () => {
      if (isInterrupted) return;
      isInterrupted = true;
      console.error(`\n${signal}: stopping what was started`);
      await undoAll();
      process.exit(130);
    });
  }
  try {
    await main();
  } catch (error) {
    // After an interrupt, errors come from the processes that the handler above stops. It ends the run itself.
    if (isInterrupted) return;
    const isForPeople = error.isForPeople || error.code?.startsWith('ERR_PARSE_ARGS');
    console.error(isForPeople ? error.message : error);
    process.exitCode = 1;
  }
  await undoAll();
}

/** An error whose message is enough; its stack is not shown. */
export class BenchError extends Error {
  isForPeople = true;
}

/**
 * Starts a process that is stopped when the run ends, at the latest.
 *
 * @param options those of `child_process.spawn`, and `stopSignal` if it is not SIGTERM.
 * @returns the process, its pid, a promise `ended` of its exit code, `stop()` and `hasEnded()`.
 */
export function start(command, args, { stopSignal = 'SIGTERM', ...options } = {}) {
  const child = spawn(command, args, { stdio: 'ignore', ...options });
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal));
    child.once('error', (error) => resolve(error.message));
  });
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  const stop = async () => {
    if (hasEnded) return;
    child.kill(stopSignal);
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await ended;
    clearTimeout(timer);
  };
  atEnd(stop);
  return { child, pid: child.pid, ended, stop, hasEnded: () => hasEnded };
}

/**
 * Runs a process to its end.
 *
 * @returns what it wrote to standard output.
 * @throws {BenchError} if it fails, with what it wrote to standard error.
 */
export async function run(command, args, options = {}) {
  const { child, ended } = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => (output[stream] += text));
  }
  const code = await ended;
  if (code !== 0) {
    throw new BenchError(`${command} failed (${code}):\n${(output.stderr || output.stdout).trim()}`);
  }
  return output.stdout;
}
