import { randomBytes } from 'node:crypto';
import { hashInt8, shardMapOf } from '../src/database/shard-map.js';
import { createEmptyDatabase, type TestDatabase } from './support/database.js';
import { metric, readiness } from './support/operations.js';
import { expectError, post } from './support/requests.js';
import { failCreatesUnless, rowOf, startService, type TestService } from './support/service.js';

/** Two shards on one node, one on another. */
const ROWS = [
  { minimum: -(2 ** 31), maximum: -1_000_000_001, group: 1 },
  { minimum: -1_000_000_000, maximum: 999_999_999, group: 2 },
  { minimum: 1_000_000_000, maximum: 2 ** 31 - 1, group: 1 },
];
const { shardOf } = shardMapOf(ROWS);

/** Tables with the names of Citus's catalogue, and what it would say of the table of plants. */
const CATALOGUE = `
  CREATE TABLE pg_dist_partition AS SELECT 'plants'::regclass AS logicalrelid, 'h' AS partmethod, 'id' AS partkey;
  CREATE FUNCTION column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS 'SELECT $2';
  CREATE TABLE pg_dist_shard AS
    SELECT 'plants'::regclass AS logicalrelid, shardid, shardminvalue, shardmaxvalue
    FROM (VALUES ${ROWS.map(({ minimum, maximum }, shard) => `(${shard}, '${minimum}', '${maximum}')`).join()})
      AS shard (shardid, shardminvalue, shardmaxvalue);
  CREATE TABLE pg_dist_placement AS
    SELECT * FROM (VALUES ${ROWS.map(({ group }, shard) => `(${shard}, ${group})`).join()}) AS placement (shardid, groupid)`;

const body = (id: bigint, name = 'a') => `{"id":${id},"name":"${name}"}`;

const randomId = () => randomBytes(8).readBigInt64BE();

/** @returns an id that belongs to the shard. */
function idOf(shard: number): bigint {
  for (;;) {
    const id = randomId();
    if (shardOf(id) === shard) return id;
  }
}

let database: TestDatabase;
let service: TestService;

const create = async (id: bigint, name?: string) => (await post(service.port, body(id, name))).status;

beforeAll(async () => {
  database = await createEmptyDatabase();
  const first = await startService({ database });
  await first.sql(CATALOGUE);
  await first.stop();
  service = await startService({ database, env: { METRICS: 'on' } });
});

afterAll(async () => {
  await service.stop();
  await database.drop();
});

test('hashInt8() agrees with PostgreSQL', async () => {
  const ids = Array.from({ length: 5_000 }, (_, index) => randomId() >> BigInt(index % 64));
  const rows = await service.sql<{ hash: number }>(
    'SELECT hashint8(id) AS hash FROM unnest($1::bigint[]) WITH ORDINALITY AS given (id, place) ORDER BY place',
    [ids.map(String)],
  );
  expect(ids.map(hashInt8)).toEqual(rows.map(({ hash }) => hash));
});

test('Concurrent creates in all shards are stored once each, and a repeat is not a conflict', async () => {
  expect(await metric(service, 'plants_shards')).toBe(3);
  const ids = Array.from({ length: 50 }, randomId);
  const statuses = await Promise.all([...ids, ...ids].map((id) => create(id)));
  expect(statuses).toEqual(Array(100).fill(200));
  for (const id of ids.slice(0, 10)) {
    expectError(await post(service.port, body(id, 'another')), 400, 409);
    expect(await rowOf(service, id)).toMatchObject({ id: String(id), name: 'a' });
  }
});

test('If one shard cannot be written, the others are, and the service is ready and says how many', async () => {
  await failCreatesUnless(service, 'hashint8(id) < 1000000000');
  expect(await Promise.all([2, 0, 1].map((shard) => create(idOf(shard))))).toEqual([503, 200, 200]);
  expect(await create(idOf(2))).toBe(503);
  expect(await readiness(service)).toBe(200);
  expect([await metric(service, 'plants_shards'), await metric(service, 'plants_writable_shards')]).toEqual([
    3, 2,
  ]);
  const said = () => service.logs().match(/"shards":3,"writable":\d,"msg":"Not every shard can be written"/g);
  expect(said()).toEqual(['"shards":3,"writable":2,"msg":"Not every shard can be written"']);

  await failCreatesUnless(service, 'true');
  expect(await create(idOf(2))).toBe(200);
  expect(await metric(service, 'plants_writable_shards')).toBe(3);
  expect(service.logs().match(/Every shard can be written again/g)).toHaveLength(1);
});

test('The service is not ready if no shard can be written', async () => {
  await failCreatesUnless(service, 'false');
  for (const shard of [0, 1]) expect(await create(idOf(shard))).toBe(503);
  expect(await readiness(service)).toBe(200);
  expect(await create(idOf(2))).toBe(503);
  expect(await readiness(service)).toBe(503);
  await failCreatesUnless(service, 'true');
  expect(await create(idOf(1))).toBe(200);
  expect(await readiness(service)).toBe(200);
});

test('Wrong shard ranges never make a wrong answer', async () => {
  // These ids belong to all shards, but the service will take them for ids of one.
  const ids = [0, 1, 2].map(idOf);
  await service.sql('UPDATE pg_dist_shard SET shardminvalue = shardid, shardmaxvalue = shardid');
  await service.stop();
  service = await startService({ database });
  const send = (name: string) => Promise.all(ids.map((id) => create(id, name)));
  expect([await send('a'), await send('a'), await send('b')]).toEqual(
    [200, 200, 400].map((status) => [status, status, status]),
  );
});
