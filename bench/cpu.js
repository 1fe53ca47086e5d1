// Processor time that processes used, as Linux tells it in /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const isTold = existsSync('/proc/self/stat');
/** Linux counts in hundredths of a second for programs (USER_HZ), whatever its own clock does. */
const TICKS_PER_SECOND = 100;

/** Where the fields of /proc/<pid>/stat stand, counted after the command's name (proc(5)). */
const PARENT = 1;
const USER_TIME = 11;
const SYSTEM_TIME = 12;
const CHILDREN_USER_TIME = 13;
const CHILDREN_SYSTEM_TIME = 14;

function fieldsOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const end = stat.lastIndexOf(')');
    return { name: stat.slice(stat.indexOf('(') + 1, end), fields: stat.slice(end + 2).split(' ') };
  } catch {
    // It ended meanwhile.
    return undefined;
  }
}

const seconds = (fields, ...indexes) =>
  indexes.reduce((sum, index) => sum + Number(fields[index]), 0) / TICKS_PER_SECOND;

/** @returns seconds that the processes used so far, all their threads included; undefined where nobody tells. */
export function secondsOf(pids) {
  if (!isTold) return undefined;
  return pids.reduce((sum, pid) => sum + seconds(fieldsOf(pid).fields, USER_TIME, SYSTEM_TIME), 0);
}

/** @returns seconds that a PostgreSQL server used so far: its postmaster, its backends, and those that have ended. */
export function secondsOfPostgres(backendPid) {
  const backend = isTold && backendPid !== undefined ? fieldsOf(backendPid) : undefined;
  if (!backend?.name.startsWith('postgres')) return undefined;
  const postmaster = backend.fields[PARENT];
  const children = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(fieldsOf)
    .filter((process) => process?.fields[PARENT] === postmaster);
  return children.reduce(
    (sum, { fields }) => sum + seconds(fields, USER_TIME, SYSTEM_TIME),
    seconds(fieldsOf(postmaster).fields, USER_TIME, SYSTEM_TIME, CHILDREN_USER_TIME, CHILDREN_SYSTEM_TIME),
  );
}

/** The resident set of a process in MiB. */
export function residentMebibytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) / 1024;
}
