// The database of a run: on a temporary PostgreSQL server, or on the server of BENCH_DATABASE_URL.
import { randomBytes } from 'node:crypto';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { freePort, postgresUser, programPath } from '../test/support/machine.js';
import { atEnd, BenchError, run, start } from './processes.js';

/** Not the system's temporary folder, which may be in memory, where a commit does not wait for a disk. */
export const DISK = '/var/tmp';
const START_MS = 30_000;

/**
 * Makes an empty database.
 *
 * @returns its URL, a function that runs statements, PostgreSQL's version, and the process id of a backend if the server
 *   runs on this machine.
 */
export async function createDatabase() {
  const given = process.env.BENCH_DATABASE_URL;
  const url = new URL(given === undefined ? await startCluster() : await createOnServer(given));
  const client = await connect(url.href);
  atEnd(() => client.end());
  const sql = async (statement, parameters) => (await client.query(statement, parameters)).rows;
  const [{ version, pid }] = await sql(
    "SELECT current_setting('server_version') AS version, pg_backend_pid() AS pid",
  );
  return { url: url.href, sql, version, backendPid: isLocal(url) ? pid : undefined };
}

/** Makes a new database, so that the run changes nothing else on the server. */
async function createOnServer(server) {
  const name = `plant_store_bench_${randomBytes(4).toString('hex')}`;
  const admin = await connect(server);
  await admin.query(`CREATE DATABASE ${name}`);
  atEnd(async () => {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

async function connect(url) {
  const client = new pg.Client({ connectionString: url });
  // The server may stop before the connection ends.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

const isLocal = (url) => ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);

/** Starts a server with the defaults of initdb, and so with full durability, in a new folder. */
async function startCluster() {
  const owner = postgresUser();
  const folder = mkdtempSync(join(DISK, 'plant-store-bench-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const passwordFile = join(folder, 'password');
  const password = randomBytes(16).toString('hex');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  for (const path of owner.uid === undefined ? [] : [folder, passwordFile]) {
    chownSync(path, owner.uid, owner.gid);
  }
  const options = { ...owner, cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } };
  const data = join(folder, 'data');
  await run(
    programPath('initdb'),
    ['-D', data, '-U', 'bench', '-E', 'UTF8', '-A', 'scram-sha-256', '--pwfile', passwordFile, '--no-sync'],
    options,
  );

  const port = await freePort();
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: folder };
  const server = start(
    programPath('postgres'),
    ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    // An immediate shutdown, because the data is not kept.
    { ...options, stopSignal: 'SIGQUIT' },
  );
  const url = `postgres://bench:${password}@127.0.0.1:${port}/postgres`;
  for (const deadline = performance.now() + START_MS; ; await delay(100)) {
    try {
      const client = await connect(url);
      await client.end();
      return url;
    } catch (error) {
      if (server.hasEnded() || performance.now() > deadline) {
        throw new BenchError(`The temporary PostgreSQL did not start: ${error.message}`);
      }
    }
  }
}
