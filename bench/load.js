// One measurement: a load for some seconds, and what it cost.
import { fileURLToPath } from 'node:url';
import { secondsOf, secondsOfPostgres } from './cpu.js';
import { programPath } from '../test/support/machine.js';
import { BenchError, run } from './processes.js';
import { countCreated, TOKEN } from './servers.js';

const THREADS_OF_PGBENCH = 2;
export const NAME_BYTES = 18;

const fileBeside = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Ids count up from ten thousand million times this number, and each measurement takes numbers of its own. */
let nextFirstId = 1;
const takeFirstIds = (count) => (nextFirstId += count) - count;

/** Lets sequential ids begin above those that `random` ids are drawn from, beyond what a JavaScript number holds. */
export function beginAboveRandomIds() {
  nextFirstId = 500_000_000;
}

/**
 * Creates plants through HTTP, each request another one.
 *
 * @param database undefined for a service with its embedded one.
 * @param servers one or several replicas.
 * @param load connections, seconds; ids (`sequential` or `random`), nameBytes.
 * @throws {BenchError} where a request was not answered 200, or a create that was answered is not stored.
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

/** The limit of the database itself: one prepared single-row INSERT a transaction, by PostgreSQL's own load generator. */
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

/** Lets each measurement begin alike: an empty table, and no checkpoint due. */
export async function emptyTable({ sql }) {
  await sql('TRUNCATE plants');
  await checkpoint({ sql });
}

/** On a server of BENCH_DATABASE_URL the user may not be allowed to. */
export async function checkpoint({ sql }) {
  await sql('CHECKPOINT').catch(() => undefined);
}

/** The embedded database has no other way in than the service, which says what it stored. */
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

/** In microseconds; undefined where it was not measured. */
function perCreate(seconds, creates) {
  return Number.isNaN(seconds) ? undefined : (seconds * 1e6) / creates;
}
