// `npm run bench`: the service against the limit of its database and against other ways to write it.
import { createDatabase } from './postgres.js';
import { emptyTable, loadByPgbench, loadOverHttp } from './load.js';
import { writeChart } from './chart.js';
import { machine, median, printTable, printTargets, spread, writeJson } from './report.js';
import { build, startBaseline, startService } from './servers.js';

const SERVICE = 'Plant Store';
const PGBENCH = 'pgbench';

/** What is measured in each round, as name and connections. */
const MEASUREMENTS = [
  [PGBENCH, 8],
  [PGBENCH, 32],
  [SERVICE, 1],
  ['Node http + pg', 1],
  [SERVICE, 8],
  ['Fastify + pg', 8],
  [SERVICE, 64],
  ['Fastify + group commit', 64],
  ['Fastify + pg', 64],
  ['NestJS stock', 64],
  [SERVICE, 256],
  ['Fastify + group commit', 256],
  ['Fastify + pg', 256],
  ['NestJS stock', 256],
];

const FULL = { name: 'latest', rounds: 3, firstWarmUp: 8, warmUp: 1, seconds: 5 };
const QUICK = { name: 'quick', rounds: 1, firstWarmUp: 3, warmUp: 0, seconds: 1 };

export async function compare({ isQuick }) {
  const plan = isQuick ? QUICK : FULL;
  console.log('Building the service and starting PostgreSQL');
  await build();
  const database = await createDatabase();
  const servers = new Map([[SERVICE, await startService(database)]]);
  for (const [name] of MEASUREMENTS) {
    if (name !== PGBENCH && !servers.has(name)) servers.set(name, await startBaseline(name, database));
  }
  for (const server of servers.values()) {
    await loadOverHttp(database, [server], { connections: 64, seconds: plan.firstWarmUp });
  }

  const results = MEASUREMENTS.map(([name, connections]) => ({ name, connections, rounds: [] }));
  for (let round = 1; round <= plan.rounds; round++) {
    // Each round begins elsewhere, so that a slow drift of the machine meets everybody alike.
    const order = results.map((_, index) => results[(index + 3 * (round - 1)) % results.length]);
    for (const { name, connections, rounds } of order) {
      const measured = await measure(database, name, servers.get(name), connections, plan);
      rounds.push(measured);
      console.log(`Round ${round} of ${plan.rounds}: ${describe(name, connections, measured)}`);
    }
  }

  const targets = targetsOf(results);
  printTable(
    ['', 'connections', 'creates/s', 'spread', 'p50 ms', 'p99 ms', 'CPU µs server', 'CPU µs PostgreSQL'],
    results.map(({ name, connections, rounds }) => {
      const of = (member) => median(rounds.map((round) => round[member]));
      const figures = [of('p50'), of('p99'), of('serverCpu'), of('databaseCpu')];
      const rates = rounds.map(({ rate }) => rate);
      return [name, connections, median(rates), spread(rates), ...figures];
    }),
  );
  printTargets(targets);
  const { warmUp, seconds, rounds } = plan;
  writeJson(plan.name, { machine: machine(database), plan: { rounds, warmUp, seconds }, results, targets });
  writeChart(plan.name, barsOf(results));
}

async function measure(database, name, server, connections, { warmUp, seconds }) {
  await emptyTable(database);
  if (name === PGBENCH) return loadByPgbench(database, { connections, seconds });
  if (warmUp > 0) await loadOverHttp(database, [server], { connections, seconds: warmUp });
  return loadOverHttp(database, [server], { connections, seconds });
}

function describe(name, connections, { rate, p50, p99 }) {
  const latency = p50 === undefined ? '' : `, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
  return `${name}, ${connections} connections: ${Math.round(rate)} creates/s${latency}`;
}

/** Ratios are taken within each round, where the machine was about the same for both, and their median counts. */
function targetsOf(results) {
  const roundsOf = (name, connections) =>
    results.find((result) => result.name === name && result.connections === connections).rounds;
  const pgbench = roundsOf(PGBENCH, 8).map(({ rate }, round) =>
    Math.max(rate, roundsOf(PGBENCH, 32)[round].rate),
  );
  const rates = (name, connections) => roundsOf(name, connections).map(({ rate }) => rate);
  const p50 = (name, connections) => roundsOf(name, connections).map((round) => round.p50);
  const ratio = (own, others) => median(own.map((value, round) => value / others[round]));
  const atLeast = (what, value, bound) => ({ what, value, bound, isMet: value >= bound, sense: 'at least' });
  const atMost = (what, value, bound) => ({ what, value, bound, isMet: value <= bound, sense: 'at most' });

  const throughput = [64, 256].flatMap((connections) => {
    const own = rates(SERVICE, connections);
    const against = (name) => ratio(own, rates(name, connections));
    const at = `creates/s at ${connections} connections`;
    return [
      atLeast(`${at}, against pgbench's best`, ratio(own, pgbench), 1.5),
      atLeast(`${at}, against pgbench's best (the aim)`, ratio(own, pgbench), 2),
      atLeast(`${at}, against Fastify + pg`, against('Fastify + pg'), 2),
      atLeast(`${at}, against NestJS stock`, against('NestJS stock'), 9),
      atLeast(`${at}, against Fastify + group commit`, against('Fastify + group commit'), 0.9),
    ];
  });
  const lone = ratio(p50(SERVICE, 1), p50('Node http + pg', 1));
  const few = ratio(rates(SERVICE, 8), rates('Fastify + pg', 8));
  const tail = median(roundsOf(SERVICE, 64).map((round) => round.p99 / round.p50));
  return [
    ...throughput,
    atMost('p50 at 1 connection, against Node http + pg', lone, 1.15),
    atLeast('creates/s at 8 connections, against Fastify + pg', few, 1),
    atMost('p99 at 64 connections, against p50', tail, 4),
  ];
}

/** The bars of the chart: everybody at 64 connections, and the better of pgbench's two. */
function barsOf(results) {
  const rateOf = ({ rounds }) => median(rounds.map(({ rate }) => rate));
  const limits = results.filter(({ name }) => name === PGBENCH).map(rateOf);
  const at64 = results.filter(({ connections }) => connections === 64);
  return [
    ...at64.map((result) => ({ label: result.name, value: rateOf(result), isOwn: result.name === SERVICE })),
    { label: 'pgbench, single-row INSERT', value: Math.max(...limits), isOwn: false },
  ].sort((a, b) => b.value - a.value);
}
