// Processor time that the processes of a run used.
import { childrenOf, processOf } from '../test/support/machine.js';

/** @returns seconds that the processes used so far, all their threads included; undefined if nobody tells. */
export function secondsOf(pids) {
  if (processOf(process.pid) === undefined) return undefined;
  return pids.reduce((sum, pid) => sum + processOf(pid).cpuSeconds, 0);
}

/** @returns seconds that a PostgreSQL server used so far: its postmaster, its backends, and those that have ended. */
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
