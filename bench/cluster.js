// How many replicas, workers and shards a rate of creates needs on Citus, computed from measured CPU costs:
//   node bench/cluster.js [--rate 20000,50000,…] [--cores 4] [--load 0.7] [--commit 2] [--sessions 500] [--speed 1]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FIXED_LIMITS } from '../dist/src/plants/group-commit.js';

const { values } = parseArgs({
  options: {
    /** Creates per second. */
    rate: { type: 'string', default: '20000,40000,80000,160000,320000' },
    /** Cores of a database node. A replica of the service has one. */
    cores: { type: 'string', default: '4' },
    /** The share of its cores that a node or a replica may use. */
    load: { type: 'string', default: '0.7' },
    /** How long a commit waits for the disk and the network, in milliseconds. */
    commit: { type: 'string', default: '2' },
    /** max_connections of a node. */
    sessions: { type: 'string', default: '500' },
    /** The speed of a core, relative to those that were measured. */
    speed: { type: 'string', default: '1' },
  },
});
const [cores, load, commit, sessions, speed] = ['cores', 'load', 'commit', 'sessions', 'speed'].map((name) =>
  Number(values[name]),
);

/** The default of DATABASE_POOL_SIZE. One connection is for the readiness check. */
const POOL = 4;
const MOST_WORKERS = 64;
const { measured, unsharded } = JSON.parse(
  readFileSync(new URL('results/citus.json', import.meta.url), 'utf8'),
);

/** @returns the cost of a statement and of each of its rows, in µs, by least squares. */
function fit(points) {
  const n = points.length;
  const sum = (term) => points.reduce((total, point) => total + term(point), 0);
  const [x, y] = [sum(([rows]) => rows) / n, sum(([, cost]) => cost) / n];
  const row = sum(([rows, cost]) => (rows - x) * (cost - y)) / sum(([rows]) => (rows - x) ** 2);
  return { statement: y - row * x, row };
}

const base = measured.filter(({ workers, replicas }) => workers === 2 && replicas === 1);
const coordinator = fit(base.map(({ rows, coordinator }) => [rows, coordinator * rows]));
const worker = fit(base.map(({ rows, workersTogether }) => [rows, workersTogether * rows]));
const server = fit(unsharded.map(({ rows, database }) => [rows, database * rows]));
const NOTHING = { statement: 0, row: 0 };
const service = Math.min(...measured.map(({ service }) => service));
const costOf = ({ statement, row }, rows) => statement / rows + row;

/** @param entry where replicas connect; `one server` is without Citus. @returns what the rate needs. */
function plan(rate, workers, entry) {
  const [first, last] = entry === 'one server' ? [NOTHING, server] : [coordinator, worker];
  const replicas = Math.max(2, Math.ceil((rate * service) / speed / 1e6 / load));
  const inFlight = workers === 1 ? FIXED_LIMITS.statementsPerNode : Math.min(POOL - 1, workers);
  // A group has the creates that arrive during the previous statement, so it grows with the time of a statement.
  let rows = 1;
  for (let turn = 0; turn < 100; turn++) {
    const cpu = (costOf(first, rows) + costOf(last, rows)) * rows;
    const milliseconds = cpu / speed / 1000 / (1 - load) + commit;
    const arrived = ((rate / replicas) * milliseconds) / 1000 / inFlight;
    rows = Math.min(FIXED_LIMITS.batchRows, Math.max(1, (rows + arrived) / 2));
  }
  const coordinatorCores = (rate * costOf(first, rows)) / speed / 1e6;
  const workerCores = (rate * costOf(last, rows)) / speed / 1e6 / workers;
  const shared = entry === 'workers' ? coordinatorCores / workers : 0;
  const used = { coordinator: entry === 'workers' ? 0 : coordinatorCores, worker: workerCores + shared };
  // Each session of a node that replicas connect to keeps one on every worker.
  const needs = {
    'the coordinator': used.coordinator / cores / load,
    [entry === 'one server' ? 'the server' : 'the workers']: used.worker / cores / load,
  };
  const walls = Object.entries({ ...needs, 'sessions of a node': (replicas * POOL) / sessions });
  return { replicas, workers, rows, used, wall: walls.reduce((a, b) => (b[1] > a[1] ? b : a)) };
}

console.log('Fitted to two workers, in µs of CPU:');
for (const [name, { statement, row }] of Object.entries({ coordinator, worker, 'one server': server }))
  console.log(`  ${name}: ${statement.toFixed(0)} a statement and ${row.toFixed(1)} a row`);
console.log(`  service: ${service} a create\n\nChecked with what was measured (µs a create, all nodes):`);
console.table(
  measured.map(({ workers, replicas, entry, connections, rows, coordinator: c, workersTogether: w }) => {
    const computed = costOf(coordinator, rows) + costOf(worker, rows);
    const off = `${Math.round((computed / (c + w) - 1) * 100)} %`;
    return {
      workers,
      replicas,
      entry,
      connections,
      rows,
      measured: +(c + w).toFixed(1),
      computed: +computed.toFixed(1),
      off,
    };
  }),
);
console.log(`Nodes of ${cores} cores, used to ${load * 100} %, ${commit} ms for a commit:`);
const rows = [];
for (const rate of values.rate.split(',').map(Number)) {
  for (const entry of ['one server', 'coordinator', 'workers']) {
    const most = entry === 'one server' ? 1 : MOST_WORKERS;
    let fitting;
    for (let workers = 1; workers <= most && fitting === undefined; workers++) {
      const tried = plan(rate, workers, entry);
      if (tried.wall[1] <= 1) fitting = tried;
    }
    const { replicas, workers, rows: group, used, wall } = fitting ?? plan(rate, most, entry);
    rows.push({
      'creates/s': rate,
      entry,
      replicas,
      workers: fitting === undefined ? 'none will do' : workers,
      shards: fitting === undefined ? '' : workers === 1 ? 1 : 2 * workers,
      'rows a statement': +group.toFixed(1),
      'cores: coordinator': +used.coordinator.toFixed(1),
      'each worker': +used.worker.toFixed(1),
      'next wall': `${wall[0]}, ${Math.round(wall[1] * 100)} %`,
    });
  }
}
console.table(rows);
