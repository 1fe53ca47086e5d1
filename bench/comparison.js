// Compares the service with the limit of its database and with other implementations.
import { createDatabase } from './postgres.js';
import { emptyTable, loadByPgbench, loadOverHttp } from './load.js';
import { atLeast, atMost, median, printTable, spread } from './report.js';
import { BASELINES, startBaseline, startService, WITHOUT_FSYNC } from './servers.js';
import { startTraced } from './tracing.js';

const SERVICE = 'Plant Store';
const TRACED = 'Plant Store, traced';
const EMBEDDED = 'Plant Store, embedded';
const UNSYNCED = 'Plant Store, embedded, no fsync';
const SAME_DUTIES = 'Fastify, same duties';
const PGBENCH = 'pgbench';
const LONG_NAME_BYTES = 10_000;

/** What is measured in each round: the name, the connections and, unless it is the usual one, the size of the plants' names. */
const MEASUREMENTS = [
  [PGBENCH, 8],
  [PGBENCH, 32],
  [SERVICE, 1],
  ['Node http + pg', 1],
  [SERVICE, 8],
  ['Fastify + pg', 8],
  [SERVICE, 64],
  [SAME_DUTIES, 64],
  ['Fastify + group commit', 64],
  ['Fastify + pg', 64],
  ['Go net/http + pgx', 64],
  ['FastAPI + asyncpg', 64],
  ['NestJS stock', 64],
  [TRACED, 64],
  [SERVICE, 64, LONG_NAME_BYTES],
  [SAME_DUTIES, 64, LONG_NAME_BYTES],
  [EMBEDDED, 64],
  [UNSYNCED, 64],
  [SERVICE, 256],
  [SAME_DUTIES, 256],
  ['Fastify + pg', 256],
  ['NestJS stock', 256],
].map(([name, connections, nameBytes]) => ({ name, connections, nameBytes }));

const FULL = { rounds: 5, firstWarmUp: 5, warmUp: 1, seconds: 4 };
const QUICK = { rounds: 1, firstWarmUp: 2, warmUp: 0, seconds: 2 };

/** @returns the plan, the results of every round, the targets, and the chart's bars. */
export async function compare({ isQuick }) {
  const plan = isQuick ? QUICK : FULL;
  const database = await createDatabase();
  const servers = await startServers(database);
  for (const { server, database: own } of servers.values()) {
    await loadOverHttp(own, [server], { connections: 64, seconds: plan.firstWarmUp });
  }

  const results = MEASUREMENTS.filter(({ name }) => name === PGBENCH || servers.has(name)).map(
    (measurement) => ({ ...measurement, rounds: [] }),
  );
  for (let round = 1; round <= plan.rounds; round++) {
    // Each round begins with another measurement, so that a slow drift of the machine affects all alike.
    const order = results.map((_, index) => results[(index + 3 * (round - 1)) % results.length]);
    for (const result of order) {
      const measured = await measure(database, servers.get(result.name), result, plan);
      result.rounds.push(measured);
      console.log(`Round ${round} of ${plan.rounds}: ${describe(result, measured)}`);
    }
  }

  printTable(
    ['', 'connections', 'creates/s', 'spread', 'p50 ms', 'p99 ms', 'CPU µs server', 'CPU µs PostgreSQL'],
    results.map((result) => {
      const { connections, rounds } = result;
      const of = (member) => median(rounds.map((round) => round[member]));
      const figures = [of('p50'), of('p99'), of('serverCpu'), of('databaseCpu')];
      const rates = rounds.map(({ rate }) => rate);
      return [labelOf(result), connections, median(rates), spread(rates), ...figures];
    }),
  );
  return { database, plan, results, targets: targetsOf(results), bars: barsOf(results) };
}

/** @returns each server with its database, by name, without those that this machine cannot run. */
async function startServers(database) {
  const servers = new Map();
  const add = (name, server, own) => {
    if (server !== undefined) servers.set(name, { server, database: own });
  };
  // The service starts first, because it makes the table.
  add(SERVICE, await startService(database), database);
  for (const { name } of MEASUREMENTS) {
    if (name in BASELINES && !servers.has(name)) add(name, await startBaseline(name, database), database);
  }
  add(TRACED, await startTraced(database), database);
  add(EMBEDDED, await startService(undefined), undefined);
  add(UNSYNCED, await startService(undefined, { nodeOptions: WITHOUT_FSYNC }), undefined);
  return servers;
}

async function measure(database, target, { name, connections, nameBytes }, { warmUp, seconds }) {
  await emptyTable(database);
  if (name === PGBENCH) return loadByPgbench(database, { connections, seconds });
  const load = { connections, nameBytes };
  if (warmUp > 0) await loadOverHttp(target.database, [target.server], { ...load, seconds: warmUp });
  return loadOverHttp(target.database, [target.server], { ...load, seconds });
}

const labelOf = ({ name, nameBytes }) => (nameBytes === undefined ? name : `${name}, 10-kB names`);

function describe(result, { rate, p50, p99 }) {
  const latency = p50 === undefined ? '' : `, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
  return `${labelOf(result)}, ${result.connections} connections: ${Math.round(rate)} creates/s${latency}`;
}

/** Each ratio is taken within a round, because the machine is about the same for both then. A skipped peer has none. */
function targetsOf(results) {
  const figures = (member, name, connections, nameBytes) =>
    results
      .find((one) => one.name === name && one.connections === connections && one.nameBytes === nameBytes)
      ?.rounds.map((round) => round[member]);
  const ratios = (values, others) => others && values?.map((value, round) => value / others[round]);
  const rates = (name, connections) => figures('rate', name, connections);
  const pgbench = rates(PGBENCH, 8).map((rate, round) => Math.max(rate, rates(PGBENCH, 32)[round]));
  const creates = (connections, name, bound) =>
    atLeast(
      bound,
      `creates/s at ${connections} connections, against ${name}`,
      ratios(rates(SERVICE, connections), rates(name, connections)),
    );
  const cpu = (name, nameBytes) => figures('serverCpu', name, 64, nameBytes);

  return [
    creates(64, SAME_DUTIES, 1),
    creates(256, SAME_DUTIES, 1),
    atMost(1.05, `CPU of a create, against ${SAME_DUTIES}`, ratios(cpu(SERVICE), cpu(SAME_DUTIES))),
    atMost(
      1.2,
      'p50 of a lone request, against Node http + pg',
      ratios(figures('p50', SERVICE, 1), figures('p50', 'Node http + pg', 1)),
    ),
    creates(64, 'Go net/http + pgx', 1.4),
    creates(64, 'FastAPI + asyncpg', 6),
    creates(8, 'Fastify + pg', 1.3),
    creates(64, 'Fastify + pg', 2),
    creates(64, 'NestJS stock', 9),
    creates(256, 'NestJS stock', 9),
    atLeast(2, "creates/s at 64 connections, against pgbench's best", ratios(rates(SERVICE, 64), pgbench)),
    atMost(
      4,
      'p99 at 64 connections, against p50',
      ratios(figures('p99', SERVICE, 64), figures('p50', SERVICE, 64)),
    ),
    atMost(50, 'CPU µs of a create with a name of 10 kB', cpu(SERVICE, LONG_NAME_BYTES)),
    atLeast(0.5, 'creates/s kept with tracing', ratios(rates(TRACED, 64), rates(SERVICE, 64))),
    atMost(
      1.3,
      'embedded: creates/s without fsync, against with',
      ratios(rates(UNSYNCED, 64), rates(EMBEDDED, 64)),
    ),
  ].filter((target) => target !== undefined);
}

/** @returns the bars of the chart: all at 64 connections, relative to the better of pgbench's two results. */
function barsOf(results) {
  const rateOf = ({ rounds }) => median(rounds.map(({ rate }) => rate));
  const pgbench = Math.max(...results.filter(({ name }) => name === PGBENCH).map(rateOf));
  const at64 = results.filter(
    ({ name, connections, nameBytes }) =>
      connections === 64 && nameBytes === undefined && !name.startsWith(`${SERVICE},`),
  );
  return [
    ...at64.map((result) => ({
      label: result.name,
      value: rateOf(result) / pgbench,
      isOwn: result.name === SERVICE,
    })),
    { label: 'pgbench, single-row INSERT', value: 1, isOwn: false },
  ].sort((a, b) => b.value - a.value);
}
