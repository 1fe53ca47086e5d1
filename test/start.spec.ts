import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { needs } from './support/requirements.js';
import { createTestDatabase, type TestDatabase } from './support/database.js';

// The built service as a user starts it; `npm test` builds before it tests.
const MAIN = resolve('dist/src/main.js');

let folder: string;
let database: TestDatabase;
const children: ChildProcess[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

/** Starts the service in an empty folder with these variables and no others but PATH. */
function start(env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN], {
    cwd: folder,
    env: { PATH: process.env.PATH, PORT: '0', ...env },
  });
  children.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => (output += data.toString()));
  const exit = once(child, 'exit').then(([code]) => ({ code: code as number | null, output }));
  const until = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const found = pattern.exec(output);
      if (found !== null) return found;
      if (child.exitCode !== null) throw new Error(`the service ended: ${output}`);
      await new Promise((next) => setTimeout(next, 20));
    }
  };
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    return exit;
  };
  return { until, exit, stop };
}

const runs = (command: string) =>
  new Promise<{ code: number | null; output: string }>((done) => {
    const shell = spawn('sh', ['-c', command]);
    let output = '';
    shell.stdout.on('data', (data: Buffer) => (output += data.toString()));
    shell.on('exit', (code) => done({ code, output }));
  });

needs('curl')('without a token', () => {
  test('it prints one, with a curl line that works as it stands', async () => {
    const service = start(database.env);
    await service.until(
      /Plant Store listens on http:\/\/127\.0\.0\.1:\d+\nSwagger UI: http:\/\/127\.0\.0\.1:\d+\/docs\n/,
    );
    const [line] = await service.until(/curl -X POST .*/);
    expect(await runs(line)).toEqual({ code: 0, output: '{"name":"Monstera","tag":"indoor"}' });
    expect((await service.stop()).code).toBe(0);
  });
});

test('a restart finds the plants of the last run, and knows the token of the file .env', async () => {
  await writeFile(join(folder, '.env'), 'ACCESS_TOKENS=from-file\n');
  /** Starts, creates and stops. */
  const createInARun = async (name: string, signal: NodeJS.Signals) => {
    const service = start(database.env);
    const [, base = ''] = await service.until(/listens on (\S+)/);
    const { status } = await fetch(`${base}/plants`, {
      method: 'POST',
      headers: { Authorization: 'Bearer from-file', 'Content-Type': 'application/json' },
      body: `{"id":-1,"name":"${name}"}`,
    });
    const { code, output } = await service.stop(signal);
    expect(output).not.toContain('from-file');
    return { status, code };
  };
  expect(await createInARun('Monstera', 'SIGTERM')).toEqual({ status: 200, code: 0 });
  expect(await createInARun('Ficus', 'SIGINT')).toEqual({ status: 400, code: 0 });
  await rm(join(folder, '.env'));
});

test('every fault of the environment is told, and the exit code is 1', async () => {
  const { code, output } = await start({ PORT: 'x', METRICS: 'x', NODE_ENV: 'production' }).exit;
  expect(code).toBe(1);
  for (const name of ['PORT', 'METRICS', 'ACCESS_TOKENS', 'DATABASE_URL'])
    expect(output).toContain(`\n  ${name} `);
});

test('a port that is taken is told, and the exit code is 1', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, output } = await start({ ...database.env, PORT: String(port) }).exit;
  other.close();
  expect(code).toBe(1);
  expect(output).toContain(`address already in use 127.0.0.1:${port}`);
});

test('a database that refuses the user is told, and the exit code is 1', async () => {
  const refusing = createServer((socket) => {
    socket.on('error', () => undefined);
    // ErrorResponse with SQLSTATE 28P01, as PostgreSQL answers to a wrong password.
    const fields = 'SFATAL\0C28P01\0Mpassword authentication failed for user "u"\0\0';
    socket.once('data', () => {
      const head = Buffer.from('E\0\0\0\0');
      head.writeInt32BE(4 + fields.length, 1);
      socket.end(Buffer.concat([head, Buffer.from(fields)]));
    });
  }).listen(0, '127.0.0.1');
  await once(refusing, 'listening');
  const { port } = refusing.address() as AddressInfo;
  const { code, output } = await start({ DATABASE_URL: `postgres://u:hunter2@127.0.0.1:${port}/d` }).exit;
  refusing.close();
  expect(code).toBe(1);
  expect(output).toContain('Plant Store could not start: password authentication failed');
  expect(output).not.toContain('hunter2');
});

test('while the database cannot be reached it lives, is not ready, answers 503, and goes on waiting', async () => {
  const service = start({
    DATABASE_URL: 'postgres://u@127.0.0.1:1/d',
    ACCESS_TOKENS: 't',
    PORT: '0',
    LOG_LEVEL: 'info',
  });
  const [, port = ''] = await service.until(/"port":(\d+),"msg":"Listening"/);
  await service.until(/cannot be reached yet/);
  const answers = await Promise.all([
    fetch(`http://127.0.0.1:${port}/health/live`),
    fetch(`http://127.0.0.1:${port}/health/ready`),
    fetch(`http://127.0.0.1:${port}/plants`, {
      method: 'POST',
      headers: { Authorization: 'Bearer t', 'Content-Type': 'application/json' },
      body: '{"id":1,"name":"a"}',
    }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 503, 503]);
  expect(answers[2].headers.get('retry-after')).toMatch(/^\d+$/);
  expect((await service.stop()).code).toBe(0);
});
