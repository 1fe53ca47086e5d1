// The processor time of the processes of a run.
import { childrenOf, processOf } from '../test/support/machine.js';

/** @returns the processor time of the processes with all their threads, in seconds; undefined if this is not Linux. */
export function secondsOf(pids) {
  if (processOf(process.pid) === undefined) return undefined;
  return pids.reduce((sum, pid) => sum + processOf(pid).cpuSeconds, 0);
}

/**
 * @returns the processor time of a PostgreSQL server, in seconds: its postmaster, its backends and those that ended;
 *   undefined if it does not run on this machine.
 */
export function secondsOfPostgres(backendPid) {
  const backend = backendPid === undefined ? undefined : processOf(backendPid);
  if (!backend?.name.startsWith('postgres')) return undefined;
  const postmaster = processOf(backend.parent);
  const running = childrenOf(backend.parent).map(processOf);
  return running.reduce(
    (sum, process) => sum + (process?.cpuSeconds ?? 0),
    postmaster.cpuSeconds + postmaster.endedChildrenCpuSeconds,
  );
}
