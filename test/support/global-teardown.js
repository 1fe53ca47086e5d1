import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import pg from 'pg';
import { allProcesses } from './machine.js';

/** The folder for the lock of a data folder with a long path. A service that is killed leaves it behind. */
const LOCK = /^plant-store-[0-9a-f]{32}$/;

/**
 * Removes the processes, mounts, folders and databases that the run left behind.
 *
 * @throws if there were any, with their names, because each test must undo what it sets up.
 */
export default async function tearDown() {
  const folder = process.env.TMPDIR;
  const left = [...endProcesses(folder), ...unmount(folder), ...(await dropDatabases())];
  left.push(...readdirSync(folder).filter((name) => name.startsWith('plant-store-') && !LOCK.test(name)));
  rmSync(folder, { recursive: true, force: true });
  if (left.length > 0) throw new Error(`The tests left behind:\n${left.join('\n')}`);
}

/** Kills each process that runs in the folder or has a path in it as an argument. */
function endProcesses(folder) {
  return allProcesses()
    .map((pid) => ({ pid, command: commandOf(pid), folder: workingFolderOf(pid) }))
    .filter((found) => found.pid !== process.pid && `${found.folder} ${found.command}`.includes(folder))
    .map(({ pid, command }) => {
      process.kill(pid, 'SIGKILL');
      return `process ${pid}: ${command}`;
    });
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function workingFolderOf(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

function unmount(folder) {
  if (!existsSync('/proc/mounts')) return [];
  const points = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(folder));
  for (const point of points.reverse()) execFileSync('umount', [point]);
  return points.map((point) => `mount ${point}`);
}

async function dropDatabases() {
  if (process.env.TEST_DATABASE_URL === undefined) return [];
  const client = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL });
  await client.connect();
  try {
    const pattern = `plant_store_test_${process.env.PLANT_STORE_TEST_RUN}%`;
    const { rows } = await client.query('SELECT datname FROM pg_database WHERE datname LIKE $1', [pattern]);
    for (const { datname } of rows) await client.query(`DROP DATABASE ${datname} WITH (FORCE)`);
    return rows.map(({ datname }) => `database ${datname}`);
  } finally {
    await client.end();
  }
}
