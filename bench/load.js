// One measurement: a load for some seconds, and its cost.
import { fileURLToPath } from 'node:url';
import { secondsOf, secondsOfPostgres } from './cpu.js';
import { programPath } from '../test/support/machine.js';
import { BenchError, run } from './processes.js';
import { countCreated, TOKEN } from './servers.js';

const THREADS_OF_PGBENCH = 2;
const NAME_BYTES = 18;

const fileBeside = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Ids count up from 10,000,000,000 times this number. Each thread of a measurement takes a new one. */
let nextFirstId = 1;
const takeFirstIds = (count) => (nextFirstId += count) - count;

/** Makes sequential ids begin above the range of random ids, and beyond 2^53. */
export function beginAboveRandomIds() {
  nextFirstId = 500_000_000;
}

/**
 * Creates plants over HTTP, a new one with each request.
 *
 * @param database is undefined for a service with the embedded database.
 * @param servers one or more replicas.
 * @param load connections, seconds, ids (`sequential` or `random`) and nameBytes.
 * @throws {BenchError} if a request is not answered 200, or fewer plants are stored than were answered.
 */
export async function loadOverHttp(database, servers, load) {
  const { connections, seconds, ids = 'sequential', nameBytes = NAME_BYTES } = load;
  const threads = servers.length;
  const env = {
    BENCH_PORTS: servers.map(({ port }) => port).join(' '),
    BENCH_TOKEN: TOKEN,
    BENCH_FIRST_ID: String(takeFirstIds(threads)),
    BENCH_IDS: ids,
    BENCH_NAME_BYTES: String(nameBytes),
  };
  const counts = [`-t${threads}`, `-c${connections}`, `-d${seconds}s`, '--timeout', '10s'];
  const url = `http://127.0.0.1:${servers[0].port}/plants`;
  const before = await countPlants(database, servers);
  const { result: report, cpu } = await measure(database, servers, () =>
    run('wrk', [...counts, '-s', fileBeside('create-plants.lua'), url], { env }),
  );
  const { requests, microseconds, p50, p99, refused, failed } = JSON.parse(
    report.slice(report.lastIndexOf('{')),
  );
  const stored = (await countPlants(database, servers)) - before;
  if (refused > 0 || failed > 0 || requests === 0 || stored < requests) {
    throw new BenchError(
      `Of ${requests} creates ${refused} were refused and ${failed} failed; ${stored} plants were stored`,
    );
  }
  return {
    rate: requests / (microseconds / 1e6),
    p50: p50 / 1000,
    p99: p99 / 1000,
    serverCpu: perCreate(cpu.server, requests),
    databaseCpu: perCreate(cpu.database, requests),
  };
}

/** Measures the limit of the database with pgbench: one prepared single-row INSERT per transaction. */
export async function loadByPgbench(database, { connections, seconds }) {
  const variables = ['-D', 'number=0', '-D', `first_id=${takeFirstIds(1)}`];
  const counts = ['-c', `${connections}`, '-j', `${THREADS_OF_PGBENCH}`, '-T', `${seconds}`];
  const { result: report, cpu } = await measure(database, [], () =>
    run(programPath('pgbench'), [
      ...['-n', '-M', 'prepared', ...counts, ...variables, '-f', fileBeside('create-plant.sql')],
      database.url,
    ]),
  );
  const rate = Number(/^tps = ([\d.]+)/m.exec(report)[1]);
  const transactions = Number(/actually processed: (\d+)/.exec(report)[1]);
  return { rate, databaseCpu: perCreate(cpu.database, transactions) };
}

/** Makes each measurement begin with an empty table and no checkpoint due. */
export async function emptyTable({ sql }) {
  await sql('TRUNCATE plants');
  await checkpoint({ sql });
}

/** Does nothing if the user of BENCH_DATABASE_URL may not do it. */
export async function checkpoint({ sql }) {
  await sql('CHECKPOINT').catch(() => undefined);
}

/** Only the service can reach the embedded database, so its metrics say how many plants it stored. */
async function countPlants(database, servers) {
  if (database === undefined) return countCreated(servers[0]);
  const [row] = await database.sql('SELECT count(*) FROM plants');
  return Number(row.count);
}

async function measure(database, servers, load) {
  const pids = servers.map(({ pid }) => pid);
  const read = () => ({ server: secondsOf(pids), database: secondsOfPostgres(database?.backendPid) });
  const before = read();
  const result = await load();
  const after = read();
  const cpu = { server: after.server - before.server, database: after.database - before.database };
  return { result, cpu };
}

/** @returns microseconds, or undefined if the time was not measured. */
function perCreate(seconds, creates) {
  return Number.isNaN(seconds) ? undefined : (seconds * 1e6) / creates;
}
