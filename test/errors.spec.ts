import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NextFunction, Request, Response } from 'express';
import { exchange, expectError, post, type Answer } from './support/requests.js';
import { TEST_CITUS_URL } from './support/database.js';
import { rowOf, startService, TOKEN, unusedId, type TestService } from './support/service.js';

/** The requests of this file have it in every part that a client can write. It must not be in any answer or log line. */
const SECRET = 'SECRET-1';

/** What a middleware with a bug may throw. The header `Fail-With` chooses one. */
const BUGS: Record<string, () => unknown> = {
  'an Error': () => new Error('INTERNAL-1'),
  'an Error with a cause': () => new Error('INTERNAL-1', { cause: new Error('INTERNAL-1') }),
  'an Error with a status of 500': () => Object.assign(new Error('INTERNAL-1'), { status: 500 }),
  'an Error with a status that is a string': () => Object.assign(new Error('INTERNAL-1'), { status: '400' }),
  'a string': () => 'INTERNAL-1',
  'an object': () => ({ message: 'INTERNAL-1', stack: 'INTERNAL-1' }),
};

let service: TestService;
const environment = process.env.NODE_ENV;
beforeAll(async () => {
  // Express shows stacks unless NODE_ENV is production, and users may not set it.
  delete process.env.NODE_ENV;
  service = await startService({ prepare: failOnDemand });
});
afterAll(async () => {
  process.env.NODE_ENV = environment;
  await service.stop();
});

function failOnDemand(app: NestExpressApplication): void {
  app.use(async (request: Request, response: Response, next: NextFunction) => {
    const bug = BUGS[request.header('Fail-With') ?? ''];
    if (request.header('Fail-Late') !== undefined) {
      response.writeHead(200, { 'Content-Type': 'text/plain' }).write('half');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    if (bug !== undefined) throw bug();
    next();
  });
}

const plant = () => `{"id":${unusedId()},"name":"${SECRET}"}`;
const send = (head: string, lines: string[] = ['Host: localhost']) =>
  exchange(service.port, [`${head} HTTP/1.1\r\n${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`]);

/** One failure of each kind. */
const FAILURES: [string, number, number, () => Promise<Answer>][] = [
  ['a missing field', 400, 422, () => post(service.port, '{}')],
  ['a field of a wrong type', 400, 422, () => post(service.port, `{"id":"${SECRET}","name":["${SECRET}"]}`)],
  ['a body that is not an object', 400, 422, () => post(service.port, `["${SECRET}"]`)],
  ['malformed JSON', 400, 400, () => post(service.port, `{"id":1,"name":${SECRET}}`)],
  ['a name that appears twice', 400, 400, () => post(service.port, `{"${SECRET}":1,"${SECRET}":2}`)],
  ['bytes that are not UTF-8', 400, 400, () => post(service.port, Uint8Array.of(0x22, 0xff, 0x22))],
  ['a body too large', 400, 413, () => post(service.port, SECRET.repeat(200_000))],
  ['another media type', 400, 415, () => post(service.port, plant(), { 'Content-Type': `text/${SECRET}` })],
  ['another content coding', 400, 415, () => post(service.port, plant(), { 'Content-Encoding': SECRET })],
  ['a taken id', 400, 409, () => createTwice()],
  ['no token', 401, 401, () => post(service.port, plant(), { Authorization: undefined })],
  ['a wrong token', 401, 401, () => post(service.port, plant(), { Authorization: `Bearer ${SECRET}` })],
  ['another path', 404, 404, () => post(service.port, plant(), {}, `/${SECRET}`)],
  ['a path that cannot be decoded', 404, 404, () => post(service.port, plant(), {}, `/%/${SECRET}`)],
  ['another method', 405, 405, () => send(`DELETE /plants?${SECRET}`)],
  ['another expectation', 400, 417, () => post(service.port, plant(), { Expect: SECRET })],
  ['no Host', 400, 400, () => send(`POST /plants?${SECRET}`, [])],
  ['a request that is not HTTP', 400, 400, () => send(SECRET)],
  ['headers too large', 431, 431, () => send('GET /', ['Host: localhost', `X: ${SECRET.repeat(5_000)}`])],
  ['a bug', 500, 500, () => post(service.port, plant(), { 'Fail-With': 'an Error' })],
];

async function createTwice(): Promise<Answer> {
  const id = unusedId();
  await post(service.port, `{"id":${id},"name":"${SECRET}"}`);
  return post(service.port, `{"id":${id},"name":"${SECRET}","tag":"${SECRET}"}`);
}

/** Words of stacks, SQL, the schema and libraries. */
const INTERNAL =
  /INTERNAL|\w{2,}error|exception|node_modules|node:|\.[jt]s\b|select |insert |pkey|constraint|express|typeorm|nestjs|</i;

function expectNothingInternal({ text, headers }: Answer): void {
  expect(text).not.toMatch(INTERNAL);
  expect(text).not.toContain(SECRET);
  expect(headers).not.toHaveProperty('x-powered-by');
  expect(headers).not.toHaveProperty('server');
}

describe('Every failure is an Error without internal details:', () => {
  test.each(FAILURES)('%s', async (_, status, error, fail) => {
    const answer = await fail();
    expectError(answer, status, error);
    expectNothingInternal(answer);
  });

  test.each(['text/html', 'text/plain;q=1, */*;q=0', '', 'nonsense'])(
    'for every Accept: %s',
    async (accept) => {
      for (const path of ['/plants', '/nothing', '/%']) {
        for (const headers of [{}, { Authorization: undefined }, { 'Fail-With': 'an Error' }]) {
          const answer = await post(service.port, '{"id":1,', { ...headers, Accept: accept }, path);
          expectError(answer, answer.status, (answer.json as { error: number }).error);
          expectNothingInternal(answer);
        }
      }
    },
  );
});

describe('A bug', () => {
  test.each(Object.keys(BUGS))('is answered 500, and logged once with what was thrown: %s', async (bug) => {
    const before = service.logs().length;
    const answer = await post(service.port, plant(), { 'Fail-With': bug });
    expectError(answer, 500);
    expectNothingInternal(answer);
    const logged = errorLines(before);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatchObject({ level: 50, error: 500, requestId: answer.headers['x-request-id'] });
  });

  test('is logged with its stack', async () => {
    const before = service.logs().length;
    await post(service.port, plant(), { 'Fail-With': 'an Error with a cause' });
    const err = { message: 'INTERNAL-1', stack: expect.stringContaining('errors.spec') as string };
    expect(errorLines(before)[0]).toMatchObject({ err: { ...err, cause: err } });
  });

  test('that throws during the response ends the connection, so the client sees that it is incomplete', async () => {
    const answer = await post(service.port, plant(), { 'Fail-With': 'an Error', 'Fail-Late': '1' });
    // The last chunk is missing.
    expect(answer.text).toBe('4\r\nhalf\r\n');
  });

  test('does not stop the service', async () => {
    expect((await post(service.port, plant())).status).toBe(200);
  });
});

/** @returns the log lines of level warn and above after this position that have an error. */
function errorLines(since: number): { level: number }[] {
  const lines = service.logs().slice(since).trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as { level: number })
    .filter((line) => line.level >= 40 && 'err' in line);
}

describe('A failure of the database', () => {
  test.each([
    ['a missing table', '42P01', 'ALTER TABLE plants RENAME TO gone', 'ALTER TABLE gone RENAME TO plants'],
    [
      'a missing column',
      '42703',
      'ALTER TABLE plants RENAME tag TO gone',
      'ALTER TABLE plants RENAME gone TO tag',
    ],
  ])('of every create is answered 503; its SQLSTATE is logged: %s', async (_, sqlState, damage, repair) => {
    const id = unusedId();
    const body = `{"id":${id},"name":"${SECRET}","tag":"${SECRET}"}`;
    await service.sql(damage);
    const before = service.logs().length;
    const answer = await post(service.port, body);
    await service.sql(repair);

    expectError(answer, 503);
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    expectNothingInternal(answer);
    expect(errorLines(before)).toMatchObject([{ level: 50, err: { code: sqlState } }]);
    expect(await rowOf(service, id)).toBeUndefined();
    expect((await post(service.port, body)).status).toBe(200);
  });

  const TRIGGER = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF NEW.tag IS NOT NULL THEN RAISE EXCEPTION 'not %', NEW.name; END IF; RETURN NEW; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION refuse()`;
  // A table that is distributed by Citus cannot have triggers.
  const TRIGGERS: [string, string, string, string][] =
    TEST_CITUS_URL === undefined
      ? [['a trigger that repeats the value', 'P0001', TRIGGER, 'DROP FUNCTION refuse() CASCADE']]
      : [];
  test.each<[string, string, string, string]>([
    [
      'a constraint',
      '23514',
      'ALTER TABLE plants ADD CONSTRAINT few CHECK (tag IS NULL)',
      'ALTER TABLE plants DROP CONSTRAINT few',
    ],
    [
      'a narrower column',
      '22001',
      'ALTER TABLE plants ALTER tag TYPE varchar(3)',
      'ALTER TABLE plants ALTER tag TYPE text',
    ],
    ...TRIGGERS,
  ])('of one plant is answered 422; its SQLSTATE is logged: %s', async (_, sqlState, damage, repair) => {
    const [good, bad] = [unusedId(), unusedId()];
    await service.sql('DELETE FROM plants WHERE tag IS NOT NULL');
    for (const statement of damage.split(/;\s+(?=CREATE)/)) await service.sql(statement);
    const before = service.logs().length;
    const [refused, stored] = await Promise.all([
      post(service.port, `{"id":${bad},"name":"${SECRET}","tag":"${SECRET}"}`),
      post(service.port, `{"id":${good},"name":"${SECRET}"}`),
    ]);
    await service.sql(repair);

    expectError(refused, 400, 422);
    expectNothingInternal(refused);
    expect(stored.status).toBe(200);
    expect(errorLines(before)).toMatchObject([{ level: 40, err: { code: sqlState } }]);
    expect([await rowOf(service, bad), (await rowOf(service, good))?.name]).toEqual([undefined, SECRET]);
  });
});

test('No log line has anything of what clients sent', () => {
  const logs = service.logs();
  expect(logs).toContain('"error":422');
  expect(logs).not.toContain(SECRET);
  expect(logs).not.toContain(TOKEN);
});

test('A request whose body is malformed is no fault of the service, even if its route does not read it', async () => {
  const before = service.logs().length;
  const answer = await exchange(service.port, [
    'GET /health/live HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  ]);
  expectError(answer, 400);
  // Another request, so that the first has ended.
  await post(service.port, '{}');
  expect(service.logs().slice(before)).not.toMatch(/"level":[56]0/);
});
