// What the tests and the benchmark ask of the machine: ports, programs, PostgreSQL's user, and processes by Linux's /proc.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** @returns a TCP port of the loopback address that nothing listens on now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Where Debian keeps PostgreSQL's server programs, in a folder for each version. */
const POSTGRESQL = '/usr/lib/postgresql';
const versions = existsSync(POSTGRESQL) ? readdirSync(POSTGRESQL).sort((a, b) => Number(b) - Number(a)) : [];

const FOLDERS = [
  ...versions.map((version) => join(POSTGRESQL, version, 'bin')),
  ...(process.env.PATH ?? '').split(delimiter),
  // Daemons are in the system's folders, which a person's PATH may leave out.
  '/usr/sbin',
  '/usr/bin',
  '/usr/local/sbin',
];

/** @returns the path of an installed program, of PostgreSQL's the newest; or undefined. */
export function programPath(name) {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * @returns whom PostgreSQL's server programs must run as, for the options of `child_process`: they refuse root.
 * @throws if this is root and there is no user `postgres`.
 */
export function postgresUser() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Linux counts in hundredths of a second for programs (USER_HZ), whatever its own clock does. */
const TICKS_PER_SECOND = 100;

/**
 * @returns what /proc/<pid>/stat tells of a process (proc(5)): its name, its state ('Z' if it ended and nobody asked),
 *   its parent's id, and the seconds of processor time that it used, and that its children used which have ended.
 *   undefined if there is none.
 */
export function processOf(pid) {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The command's name, in parentheses, may hold anything.
  const end = stat.lastIndexOf(')');
  const fields = stat.slice(end + 2).split(' ');
  const seconds = (first) => (Number(fields[first]) + Number(fields[first + 1])) / TICKS_PER_SECOND;
  return {
    name: stat.slice(stat.indexOf('(') + 1, end),
    state: fields[0],
    parent: Number(fields[1]),
    cpuSeconds: seconds(11),
    endedChildrenCpuSeconds: seconds(13),
  };
}

/** @returns the ids of all processes; none if this is not Linux. */
export function allProcesses() {
  if (!existsSync('/proc/self/stat')) return [];
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

export function childrenOf(pid) {
  return allProcesses().filter((child) => processOf(child)?.parent === pid);
}

/** @returns the memory of a process that is in RAM, garbage included, in MiB. */
export function residentMebibytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) / 1024;
}
