// `npm run bench -- --growth`: the cost of a create as the table, the plants, the replicas and the logs grow.
import { beginAboveRandomIds, checkpoint, emptyTable, loadOverHttp } from './load.js';
import { createDatabase } from './postgres.js';
import { median, printTable } from './report.js';
import { startService } from './servers.js';
import { startTraced } from './tracing.js';

const CONNECTIONS = 64;
const FULL = { sizes: [1_000_000, 10_000_000], rounds: 3, warmUp: 2, seconds: 8 };
const QUICK = { sizes: [10_000, 100_000], rounds: 1, warmUp: 1, seconds: 1 };

/** The greatest `random` id, see create-plants.lua. */
const RANDOM_IDS_END = 4_611_686_017_999_999_999n;
const ROWS_A_STATEMENT = 500_000;

export async function measureGrowth({ isQuick }) {
  const plan = isQuick ? QUICK : FULL;
  const database = await createDatabase();
  beginAboveRandomIds();

  const service = await startService(database);
  const replica = await startService(database);
  const logging = await startService(database, { env: { LOG_LEVEL: 'info' } });
  const tracing = await startTraced(database);
  const cases = [
    { what: 'nothing: an empty table, ids in sequence, 18-byte names', servers: [service] },
    { what: 'random ids', servers: [service], ids: 'random' },
    { what: 'two replicas', servers: [service, replica] },
    { what: '100-byte names', servers: [service], nameBytes: 100 },
    { what: '10-kB names', servers: [service], nameBytes: 10_000 },
    { what: 'access log at info', servers: [logging] },
    ...(tracing === undefined ? [] : [{ what: 'tracing', servers: [tracing] }]),
  ].map((one) => ({ ...one, rounds: [] }));
  await measureInTurn(database, cases, plan, () => emptyTable(database));

  for (const rows of plan.sizes) {
    await fill(database, rows);
    const filled = ['sequential', 'random'].map((ids) => ({
      what: `${rows.toLocaleString('en')} rows stored, ${ids} ids`,
      servers: [service],
      ids,
      rounds: [],
    }));
    await measureInTurn(database, filled, plan, () => checkpoint(database));
    cases.push(...filled);
  }

  const results = cases.map(({ what, rounds }) => {
    const of = (member) => median(rounds.map((round) => round[member]));
    const members = ['rate', 'p50', 'p99', 'serverCpu', 'databaseCpu'];
    return { what, ...Object.fromEntries(members.map((member) => [member, of(member)])) };
  });
  printTable(
    ['What is different', 'creates/s', 'share', 'p50 ms', 'p99 ms', 'CPU µs server', 'CPU µs PostgreSQL'],
    results.map(({ what, rate, p50, p99, serverCpu, databaseCpu }) => {
      const share = `${Math.round((rate / results[0].rate) * 100)} %`;
      return [what, rate, share, p50, p99, serverCpu, databaseCpu];
    }),
  );
  return { database, plan, results };
}

async function measureInTurn(database, cases, { rounds, warmUp, seconds }, prepare) {
  for (let round = 1; round <= rounds; round++) {
    for (const { what, servers, rounds: measured, ...load } of cases) {
      await prepare();
      await loadOverHttp(database, servers, { ...load, connections: CONNECTIONS, seconds: warmUp });
      const figures = await loadOverHttp(database, servers, { ...load, connections: CONNECTIONS, seconds });
      measured.push(figures);
      console.log(`Round ${round} of ${rounds}: ${what}: ${Math.round(figures.rate)} creates/s`);
    }
  }
}

/** Stores rows with ids that are spread evenly over the range of random ids. */
async function fill({ sql }, rows) {
  const step = RANDOM_IDS_END / BigInt(rows);
  await sql('TRUNCATE plants');
  for (let first = 1; first <= rows; first += ROWS_A_STATEMENT) {
    const last = Math.min(rows, first + ROWS_A_STATEMENT - 1);
    await sql(
      `INSERT INTO plants (id, name, tag)
       SELECT number * $1::bigint, 'Monstera deliciosa', 'indoor' FROM generate_series($2::bigint, $3::bigint) number`,
      [String(step), first, last],
    );
    console.log(`Stored ${last.toLocaleString('en')} of ${rows.toLocaleString('en')} rows`);
  }
  await sql('VACUUM (ANALYZE) plants');
}
