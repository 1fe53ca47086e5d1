import { DataSource } from 'typeorm';
import { post } from './support/requests.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeEach(async () => {
  service = await startService();
});
afterEach(() => service.stop());

const create = (id = unusedId()) => post(service.port, `{"id":${id},"name":"a"}`);

/** Those of the session that was used last: the pool hands it out again, so one statement after the other meets it. */
const prepared = async () =>
  (await service.sql<{ name: string }>('SELECT name FROM pg_prepared_statements')).map(({ name }) => name);

const notices = () => service.logs().split('Sessions do not keep prepared statements').length - 1;

test('a lone create is parsed once by its session', async () => {
  expect(await prepared()).toEqual([]);
  await create();
  const names = await prepared();
  expect(names).toEqual([expect.stringMatching(/^plants_[0-9a-f]{16}$/)]);
  await create();
  expect(await prepared()).toEqual(names);
  expect(notices()).toBe(0);
});

// What PgBouncer does that hands sessions on and does not know of prepared statements: the next transaction comes to a
// session without the statement, or with one that another client made.
test('creates go on where their session lost what it had prepared, without preparing from then on', async () => {
  await create();
  await service.sql('DEALLOCATE ALL');
  const ids = Array.from({ length: 8 }, unusedId);
  expect((await Promise.all(ids.map(create))).map(({ status }) => status)).toEqual(Array(8).fill(200));
  for (const id of ids) expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
  // A second session may have prepared it meanwhile.
  await service.sql('DEALLOCATE ALL');
  await create();
  expect([notices(), await prepared()]).toEqual([1, []]);
});

test('creates go on where their session has another statement of the name', async () => {
  await create();
  const [name] = await prepared();
  await service.stop();
  service = await startService();
  await service.app.get(DataSource).query(`PREPARE ${name} AS SELECT 1`);
  const id = unusedId();
  expect((await create(id)).status).toBe(200);
  expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
  expect(notices()).toBe(1);
});
