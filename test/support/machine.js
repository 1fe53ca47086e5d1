// Free ports, installed programs, PostgreSQL's user and processes (from /proc), for the tests and the benchmark.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** @returns a TCP port of 127.0.0.1 that nothing listens on now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Debian's folder for PostgreSQL's server programs, with a folder for each version. */
const POSTGRESQL = '/usr/lib/postgresql';
const versions = existsSync(POSTGRESQL) ? readdirSync(POSTGRESQL).sort((a, b) => Number(b) - Number(a)) : [];

const FOLDERS = [
  ...versions.map((version) => join(POSTGRESQL, version, 'bin')),
  ...(process.env.PATH ?? '').split(delimiter),
  // A user's PATH may lack the folders of daemons.
  '/usr/sbin',
  '/usr/bin',
  '/usr/local/sbin',
];

/** @returns the path of an installed program (PostgreSQL's in its newest version), or undefined. */
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
 * PostgreSQL's server programs refuse to run as root.
 *
 * @returns options of `child_process` that run them as the user `postgres` if this process is root, otherwise none.
 * @throws if this process is root and there is no such user.
 */
export function postgresUser() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Linux tells programs processor time in hundredths of a second (USER_HZ), at any clock rate of its own. */
const TICKS_PER_SECOND = 100;

/**
 * @returns what /proc/<pid>/stat says of a process (proc(5)): its name, its state ('Z' for a zombie), its parent's id,
 *   and the processor time, in seconds, of the process and of its ended children; undefined if there is no such process.
 */
export function processOf(pid) {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The name, in parentheses, may contain any character.
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

/** @returns the resident memory of a process, garbage included, in MiB. */
export function residentMebibytes(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) / 1024;
}
