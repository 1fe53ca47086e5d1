import { DataSource } from 'typeorm';
import { post } from './support/requests.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';

let service: TestService;
beforeEach(async () => {
  service = await startService();
});
afterEach(() => service.stop());

const create = (id = unusedId()) => post(service.port, `{"id":${id},"name":"a"}`);

/** @returns the prepared statements of the session that was used last, because the pool hands out that one first. */
const prepared = async () =>
  (await service.sql<{ name: string }>('SELECT name FROM pg_prepared_statements')).map(({ name }) => name);

const notices = () => service.logs().split('Sessions do not keep prepared statements').length - 1;

test('A session prepares the statement of a create once', async () => {
  expect(await prepared()).toEqual([]);
  await create();
  const names = await prepared();
  expect(names).toEqual([expect.stringMatching(/^plants_[0-9a-f]{16}$/)]);
  await create();
  expect(await prepared()).toEqual(names);
  expect(notices()).toBe(0);
});

// PgBouncer in transaction mode may give the next transaction a session without the prepared statement, or with one that
// another client made.
test('If a session loses its prepared statement, creates succeed and prepare no more', async () => {
  await create();
  await service.sql('DEALLOCATE ALL');
  const ids = Array.from({ length: 8 }, unusedId);
  expect((await Promise.all(ids.map(create))).map(({ status }) => status)).toEqual(Array(8).fill(200));
  for (const id of ids) expect(await rowOf(service, id)).toMatchObject({ name: 'a' });
  // Another session may have prepared it before the loss was noticed.
  await service.sql('DEALLOCATE ALL');
  await create();
  expect([notices(), await prepared()]).toEqual([1, []]);
});

test('If a session has another statement of that name, creates succeed', async () => {
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
