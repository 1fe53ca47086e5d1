import { createTestDatabase, onServer, type TestDatabase } from './support/database.js';
import { metric } from './support/operations.js';
import { until } from './support/patience.js';
import { needs } from './support/requirements.js';
import { expectError, post, type Answer } from './support/requests.js';
import {
  countRows,
  holdCreates,
  rowOf,
  startService,
  unusedId,
  type TestService,
} from './support/service.js';

const METRICS = { METRICS: 'on' };

const bodyOf = (id: bigint, name: string) => `{"id":${id},"name":"${name}"}`;
const unusedIds = (count: number) => Array.from({ length: count }, unusedId);

const statements = (service: TestService) => metric(service, 'plants_batch_rows_count');

/** Holds creates, sends requests, and lets them go on once `waiting` creates of each service wait. */
async function heldUp(
  services: TestService[],
  waiting: number,
  send: () => Promise<Answer>[],
): Promise<Answer[]> {
  const goOn = await holdCreates(services[0] as TestService);
  let answers: Promise<Answer>[];
  try {
    answers = send();
    for (const service of services)
      await until(
        'the creates wait',
        async () => (await metric(service, 'plants_waiting_creates')) >= waiting,
      );
  } finally {
    await goOn();
  }
  return Promise.all(answers);
}

describe('With one service', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ env: METRICS });
  });
  afterAll(() => service.stop());

  test('500 concurrent creates are stored by less than 50 statements', async () => {
    const ids = unusedIds(500);
    const [rowsBefore, statementsBefore] = [await countRows(service), await statements(service)];
    const answers = await heldUp([service], 490, () =>
      ids.map((id) => post(service.port, bodyOf(id, `plant ${id}`))),
    );
    expect(answers.map(({ text }) => text)).toEqual(ids.map((id) => `{"name":"plant ${id}"}`));
    expect((await countRows(service)) - rowsBefore).toBe(500);
    expect((await statements(service)) - statementsBefore).toBeLessThan(50);
  });

  test('a row that the database refuses fails alone', async () => {
    await service.sql("ALTER TABLE plants ADD CONSTRAINT no_weeds CHECK (name <> 'weed')");
    const ids = unusedIds(100);
    const isWeed = (index: number) => index === 50 || index === 90;
    const [rowsBefore, statementsBefore] = [await countRows(service), await statements(service)];
    const answers = await heldUp([service], 90, () =>
      ids.map((id, index) => post(service.port, bodyOf(id, isWeed(index) ? 'weed' : 'flower'))),
    );
    const weeds = answers.filter((_, index) => isWeed(index));
    for (const weed of weeds) {
      expectError(weed, 400, 422);
      expect(weed.text).not.toContain('no_weeds');
    }
    const flowers = answers.filter((_, index) => !isWeed(index));
    expect(flowers.map(({ status }) => status)).toEqual(Array(98).fill(200));
    expect((await countRows(service)) - rowsBefore).toBe(98);
    // Only statements that succeed count. Most flowers shared one; only batches with a weed were split.
    expect((await statements(service)) - statementsBefore).toBeLessThan(30);
  });
});

needs('TEST_DATABASE_URL')('With two services on one database', () => {
  let database: TestDatabase;
  let services: TestService[];
  beforeAll(async () => {
    database = await createTestDatabase();
    const start = () => startService({ database, env: METRICS });
    services = [await start(), await start()];
  });
  const stop = () => Promise.all(services.splice(0).map((service) => service.stop()));
  afterAll(async () => {
    await stop();
    await database.drop();
  });

  test('one of several different plants with the same id is stored, and the others are refused', async () => {
    const ids = unusedIds(30);
    const requests = services.flatMap(({ port }) =>
      ids.flatMap((id) => ['a', 'b', 'c'].map((name) => ({ port, id, name: `${name} of ${port}` }))),
    );
    const answers = await heldUp(services, 80, () =>
      requests.map(({ port, id, name }) => post(port, bodyOf(id, name))),
    );
    for (const id of ids) {
      const name = (await rowOf(services[0] as TestService, id))?.name as string;
      requests.forEach((request, index) => {
        if (request.id !== id) return;
        const answer = answers[index] as Answer;
        if (request.name === name) expect([answer.status, answer.json]).toEqual([200, { name }]);
        else expectError(answer, 400, 409);
      });
    }
  });

  test('overlapping batches do not deadlock', async () => {
    // Slow rows make certain that the batches run at the same time.
    await services[0]?.sql("ALTER TABLE plants ADD CONSTRAINT slow CHECK (pg_sleep(0.002)::text = '')");
    const before = await countRows(services[0] as TestService);
    for (let round = 1; round <= 3; round++) {
      const ids = unusedIds(60);
      const orders = [ids, ids.toReversed()];
      const answers = await heldUp(services, 50, () =>
        services.flatMap(({ port }, index) =>
          (orders[index] as bigint[]).map((id) => post(port, bodyOf(id, 'same'))),
        ),
      );
      expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(
        Array(120).fill('200 {"name":"same"}'),
      );
      expect((await countRows(services[0] as TestService)) - before).toBe(60 * round);
    }
    // A session reports its statistics when it ends, at the latest.
    await stop();
    const [statistics] = await onServer(
      database.env.DATABASE_URL as string,
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    expect(statistics).toEqual({ deadlocks: '0' });
  });
});
