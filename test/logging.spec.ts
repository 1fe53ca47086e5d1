import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { converse } from './support/connection.js';
import { createTestDatabase, TEST_CITUS_URL, type TestDatabase } from './support/database.js';
import { until } from './support/patience.js';
import { exchange, post, type Answer } from './support/requests.js';
import { needs } from './support/requirements.js';
import { ServiceProcess } from './support/service-process.js';
import { startService, TOKEN, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Line = Record<string, unknown> & { msg: string; level: number };

const parseLines = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

/** @returns NODE_OPTIONS that run a script in the service before its own code. */
const preload = (script: string) => `--import data:text/javascript,${encodeURIComponent(script)}`;

const plant = (name = 'a') => `{"id":${unusedId()},"name":${JSON.stringify(name)}}`;

describe('The log', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  /** Waits for the log lines of the request that got this answer. */
  async function linesOf(answer: Answer): Promise<Line[]> {
    const id = answer.headers['x-request-id'];
    for (;;) {
      const lines = parseLines(service.logs()).filter(({ requestId }) => requestId === id);
      if (lines.length > 0) return lines;
      await delay(1);
    }
  }

  const send = (requestLine: string, headers = '') =>
    exchange(service.port, [
      `${requestLine} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`,
    ]);

  test.each<[string, () => Promise<Answer>, object]>([
    ['200', () => post(service.port, plant()), { method: 'POST', route: '/plants', status: 200 }],
    [
      '400',
      () => post(service.port, '{"name":"a"}'),
      { method: 'POST', route: '/plants', status: 400, error: 422 },
    ],
    [
      '401',
      () => post(service.port, plant(), { Authorization: undefined }),
      { method: 'POST', route: '/plants', status: 401, error: 401 },
    ],
    ['404', () => send('GET /PLANTS?q=1'), { method: 'GET', route: 'unmatched', status: 404, error: 404 }],
    ['405', () => send('PUT /plants'), { method: 'PUT', route: 'unmatched', status: 405, error: 405 }],
    ['a probe', () => send('GET /health/live'), { method: 'GET', route: '/health/live', status: 200 }],
  ])('has one line for each request: %s', async (_, request, expected) => {
    const answer = await request();
    const lines = await linesOf(answer);
    expect(lines).toEqual([
      {
        level: 30,
        time: expect.any(Number) as number,
        pid: process.pid,
        hostname: expect.any(String) as string,
        msg: 'request',
        requestId: expect.stringMatching(UUID) as string,
        durationMs: expect.any(Number) as number,
        client: '127.0.0.1',
        ...expected,
      },
    ]);
  });

  test.each([
    ['a', 'a'],
    ['every allowed character', 'AZaz09_-.:+/='],
    ['128 characters', 'x'.repeat(128)],
    ['as Envoy makes it', 'd4a1e6b0-9c3e-9b1f-8f6e-0c1d2e3f4a5b'],
  ])('has the X-Request-Id that the gateway sent: %s', async (_, id) => {
    const answer = await post(service.port, plant(), { 'X-Request-Id': id });
    expect(answer.headers['x-request-id']).toBe(id);
    expect(await linesOf(answer)).toMatchObject([{ requestId: id }]);
  });

  test.each([
    ['nothing', ''],
    ['129 characters', 'x'.repeat(129)],
    ['a space', 'a b'],
    ['quotes', '","level":60,"msg":"forged'],
    ['a character beyond ASCII', 'caf\u00e9'],
    ['two ids', 'a\r\nX-Request-Id: b'],
  ])('has a new request id if the gateway sent %s', async (_, id) => {
    const answer = await post(service.port, plant(), { 'X-Request-Id': id });
    expect(answer.headers['x-request-id']).toMatch(UUID);
    expect(await linesOf(answer)).toHaveLength(1);
  });

  const TRACE = '0af7651916cd43dd8448eb211c80319c';
  const SPAN = 'b7ad6b7169203331';
  test.each([
    ['version 00', `00-${TRACE}-${SPAN}-01`, true],
    ['a later version with more fields', `01-${TRACE}-${SPAN}-01-more`, true],
    ['version 00 with more fields', `00-${TRACE}-${SPAN}-01-more`, false],
    ['version ff', `ff-${TRACE}-${SPAN}-01`, false],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`, false],
    ['a parent id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`, false],
    ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`, false],
    ['text', 'SECRET', false],
  ])('has the trace id and parent id of a valid traceparent only: %s', async (_, traceparent, isValid) => {
    const [line] = await linesOf(await post(service.port, plant(), { traceparent }));
    expect([line?.traceId, line?.parentSpanId]).toEqual(isValid ? [TRACE, SPAN] : [undefined, undefined]);
  });

  test('says that the client closed the connection before the answer', async () => {
    const id = `gone-${unusedId()}`;
    const head = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nX-Request-Id: ${id}\r\n`;
    const body = 'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"id":';
    const client = connect(service.port, '127.0.0.1').setEncoding('latin1');
    const hasCome = once(service.app.getHttpServer(), 'request');
    client.write(head + body);
    await hasCome;
    client.resetAndDestroy();
    const lines = await linesOf({ status: 0, headers: { 'x-request-id': id }, text: '', json: undefined });
    expect(lines).toMatchObject([{ status: 499, aborted: true }]);
  });
});

describe('The log shows the client as an address or not at all', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ env: { TRUST_PROXY: 'loopback' } });
  });
  afterAll(() => service.stop());

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:5678', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['"[2001:db8::1]:4711"', '2001:db8::1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
    ['192.0.2.1, 127.0.0.1', '192.0.2.1'],
    ['unknown', undefined],
    ['192.0.2.256', undefined],
    ['[192.0.2', undefined],
    ['"', undefined],
    ['x'.repeat(8_000), undefined],
  ])('X-Forwarded-For: %s', async (forwarded, client) => {
    const answer = await post(service.port, plant(), { 'X-Forwarded-For': forwarded });
    expect(answer.status).toBe(200);
    const id = answer.headers['x-request-id'];
    const line = () => parseLines(service.logs()).find(({ requestId }) => requestId === id);
    await until('the request is logged', () => line() !== undefined);
    expect(line()?.client).toBe(client);
  });
});

describe('The log has nothing of what the client sent', () => {
  const SECRETS = 'SECRET';
  /** What breaks the statements of a create, and what repairs it. */
  const DAMAGES: { damage: string[]; repair: string[] }[] = [
    { damage: ['ALTER TABLE plants RENAME TO hidden'], repair: ['ALTER TABLE hidden RENAME TO plants'] },
    {
      damage: ["ALTER TABLE plants ADD CONSTRAINT no_secrets CHECK (name NOT LIKE '%SECRET%') NOT VALID"],
      repair: ['ALTER TABLE plants DROP CONSTRAINT no_secrets'],
    },
    {
      damage: ['DELETE FROM plants', 'ALTER TABLE plants ALTER COLUMN name TYPE integer USING 0'],
      repair: ['DELETE FROM plants', 'ALTER TABLE plants ALTER COLUMN name TYPE text'],
    },
    {
      damage: [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no %', NEW.name; END $$",
        'CREATE TRIGGER refuse BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION refuse()',
      ],
      repair: ['DROP FUNCTION refuse CASCADE'],
    },
  ];
  // A table that is distributed by Citus cannot have triggers.
  if (TEST_CITUS_URL !== undefined) DAMAGES.pop();

  const secretRequests = (service: TestService): Promise<unknown>[] => {
    const { port } = service;
    const body = `{"id":${unusedId()},"name":"SECRET-name","tag":"SECRET-tag","extra":"SECRET-extra"}`;
    const headers = {
      Cookie: 'session=SECRET-cookie',
      Referer: 'http://localhost/SECRET-referer',
      'User-Agent': 'SECRET-agent',
      'X-Api-Key': 'SECRET-key',
      'X-Request-Id': 'SECRET id',
    };
    return [
      post(port, body, headers),
      post(port, body, headers, '/plants?access_token=SECRET-query'),
      post(port, body, { ...headers, Authorization: 'Bearer SECRET-token' }),
      post(port, body, { ...headers, Authorization: 'Basic U0VDUkVU SECRET' }),
      post(port, body, { ...headers, 'Content-Type': 'text/SECRET' }),
      post(port, body, { ...headers, 'Content-Encoding': 'SECRET' }),
      post(port, body, headers, '/SECRET-path/../%?SECRET-query'),
      post(port, '{"id":SECRET}', headers),
      post(port, '{"SECRET":1,"SECRET":2}', headers),
      post(port, '{"id":"SECRET","name":["SECRET"],"tag":{"SECRET":1}}', headers),
      exchange(port, ['SECRET /plants HTTP/1.1\r\nHost: SECRET\r\n\r\n']),
      exchange(port, ['POST /plants HTTP/1.1\r\nHost: a\r\nSECRET\r\n\r\n']),
    ];
  };

  test.each(['trace', 'warn'])('at level %s', async (level) => {
    const service = await startService({ env: { LOG_LEVEL: level } });
    try {
      await Promise.all(secretRequests(service));
      for (const { damage, repair } of DAMAGES) {
        for (const statement of damage) await service.sql(statement);
        await Promise.all(secretRequests(service));
        for (const statement of repair) await service.sql(statement);
      }
      await delay(50);
      expect(service.logs()).not.toContain(SECRETS);
      expect(service.logs()).not.toContain(TOKEN);
    } finally {
      await service.stop();
    }
    // Proof that PostgreSQL raised the errors whose details hold the secrets.
    expect(service.logs()).toContain('23514');
    expect(service.logs()).toContain('42P01');
  });
});

describe('A failure of the database', () => {
  test('is logged with its cause, at most once for each create that it fails', async () => {
    const service = await startService({ env: { LOG_LEVEL: 'warn' } });
    try {
      await service.sql('ALTER TABLE plants RENAME TO hidden');
      const answers = await Promise.all(Array.from({ length: 40 }, () => post(service.port, plant())));
      expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(503));
      const lines = parseLines(service.logs()).filter(({ err }) => err !== undefined);
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.length).toBeLessThanOrEqual(answers.length);
      for (const line of lines) {
        expect(line).toMatchObject({ level: 50, msg: 'A statement failed', err: { code: '42P01' } });
        expect((line.err as { stack: string }).stack).toContain('relation "plants" does not exist');
      }
    } finally {
      await service.stop();
    }
  });
});

describe('The service writes its last lines when it', () => {
  const REQUESTS = 300;
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  /** @returns NODE_OPTIONS that run a statement in the service when it gets SIGHUP. */
  const onSignal = (statement: string) => preload(`process.on('SIGHUP',()=>{${statement}})`);
  const ERROR = "Object.assign(new Error('a bug'), { parameters: ['SEC' + 'RET'] })";

  test.each<[string, NodeJS.Signals, string, number, string]>([
    ['is told to stop', 'SIGTERM', '', 0, 'Stopped'],
    ['is interrupted', 'SIGINT', '', 0, 'Stopped'],
    ['throws an error that is not caught', 'SIGHUP', `throw ${ERROR}`, 1, 'The service cannot go on'],
    ['has an unhandled rejection', 'SIGHUP', `Promise.reject(${ERROR})`, 1, 'The service cannot go on'],
    ['exits by itself', 'SIGHUP', 'process.exit(3)', 3, 'request'],
  ])('%s', async (_, signal, statement, code, last) => {
    const service = await ServiceProcess.start({
      ...database.env,
      LOG_LEVEL: 'info',
      NODE_ENV: 'production',
      NODE_OPTIONS: onSignal(statement),
    });
    await Promise.all(Array.from({ length: REQUESTS }, () => post(service.port, plant())));
    expect(await service.end(signal)).toEqual({ code, signal: null });
    const lines = parseLines(service.output);
    expect(lines.filter(({ method }) => method === 'POST')).toHaveLength(REQUESTS);
    expect(lines.at(-1)?.msg).toBe(last);
    expect(service.output).not.toContain('SECRET');
  });

  test('stops before it reached its database', async () => {
    const service = await ServiceProcess.spawn({ DATABASE_URL: 'postgres://127.0.0.1:1/plant' });
    await until('the service is live', async () => (await service.probe('live')) === 200);
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(parseLines(service.output)).toMatchObject([
      { msg: 'The database cannot be reached yet; waiting for it', err: { code: 'ECONNREFUSED' } },
    ]);
  });
});

describe('A log that cannot be written does not stop the service:', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  const env = () => ({ ...database.env, LOG_LEVEL: 'info', NODE_ENV: 'production' });

  test('the reader hangs', async () => {
    const service = await ServiceProcess.start({ ...env(), METRICS: 'on' });
    const metrics = async () => (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
    service.child.stdout?.pause();
    // Log more than the pipe and the buffer before it can hold, until lines are dropped.
    const request = `POST /plants HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${'x'.repeat(128)}\r\n`;
    const many = `${request}\r\n`.repeat(999) + `${request}Connection: close\r\n\r\n`;
    let requests = 0;
    while (!/^log_lines_dropped_total [1-9]/m.test(await metrics())) {
      requests += (await converse(service.port, [many])).length;
    }
    expect(await post(service.port, plant())).toMatchObject({ status: 200 });
    service.child.stdout?.resume();
    await until('the loss is logged', () => service.output.includes('Log lines were dropped'));
    const counted = await metrics();
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
    const lines = parseLines(service.output);
    const dropped = lines.find(({ msg }) => msg.startsWith('Log lines were dropped'))?.lines as number;
    expect(counted).toContain(`\nlog_lines_dropped_total ${dropped}\n`);
    const written = lines.filter(({ method }) => method === 'POST').length;
    expect(written + dropped).toBeGreaterThan(requests);
    expect(lines.at(-1)?.msg).toBe('Stopped');
  });

  test('the disk is full', async () => {
    // open() takes the lowest free descriptor: the one of standard output, which was just closed.
    const service = await ServiceProcess.start({
      ...env(),
      NODE_OPTIONS: preload(`import fs from 'node:fs';fs.closeSync(1);fs.openSync('/dev/full','w')`),
    });
    for (let round = 0; round < 10; round++) {
      expect(await post(service.port, plant())).toMatchObject({ status: 200 });
      await delay(50);
    }
    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});

needs('prlimit')('A process that runs out of file descriptors', () => {
  const undo = undoAfterEach();

  test('says so once, counts it, and says when it is over', async () => {
    const database = await createTestDatabase();
    undo(() => database.drop());
    const service = await ServiceProcess.start({ ...database.env, METRICS: 'on' });
    undo(() => service.end('SIGKILL'));
    const metrics = async () => (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
    const limit = (descriptors: number | string) =>
      execFileSync('prlimit', ['--pid', String(service.pid), `--nofile=${descriptors}:`]);
    const said = (text: string) => service.output.split(text).length - 1;
    expect(await metrics()).toContain('\nprocess_out_of_fds_seconds_total 0\n');

    limit(3);
    await until('it says so', () => said('Out of file descriptors') > 0);
    // The service looks again twice, and says nothing new.
    await delay(2_500);
    limit(1_024);
    await until('it says that it is over', () => said('File descriptors are available again') > 0);

    expect([said('Out of file descriptors'), said('File descriptors are available again')]).toEqual([1, 1]);
    expect(Number(/^process_out_of_fds_seconds_total (\d+)$/m.exec(await metrics())?.[1])).toBeGreaterThan(1);
    expect(await post(service.port, plant())).toMatchObject({ status: 200 });
  });
});
