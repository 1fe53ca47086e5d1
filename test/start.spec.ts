import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from './support/patience.js';
import { needs } from './support/requirements.js';
import { createTestDatabase, TEST_DATABASE_URL, type TestDatabase } from './support/database.js';

// The built service, as a user starts it. `npm test` builds before it tests.
const MAIN = resolve('dist/main.js');

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

/** Starts the service in an empty folder, with these variables and PATH only. */
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
  const says = async (pattern: RegExp): Promise<RegExpExecArray> => {
    await until(`the service says ${pattern.source}`, () => {
      const isSaid = pattern.test(output);
      if (!isSaid && child.exitCode !== null) throw new Error(`the service ended: ${output}`);
      return isSaid;
    });
    return pattern.exec(output) as RegExpExecArray;
  };
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    return exit;
  };
  return { child, says, exit, stop };
}

const runs = (command: string) =>
  new Promise<{ code: number | null; output: string }>((done) => {
    const shell = spawn('sh', ['-c', command]);
    let output = '';
    shell.stdout.on('data', (data: Buffer) => (output += data.toString()));
    shell.on('exit', (code) => done({ code, output }));
  });

needs('curl')('Without a token', () => {
  test('the service prints one, in a curl command that works as it is', async () => {
    const service = start(database.env);
    await service.says(
      /Plant Store listens on http:\/\/127\.0\.0\.1:\d+\nSwagger UI: http:\/\/127\.0\.0\.1:\d+\/docs\n/,
    );
    const [line] = await service.says(/curl -X POST .*/);
    expect(await runs(line)).toEqual({ code: 0, output: '{"name":"Monstera","tag":"indoor"}' });
    expect((await service.stop()).code).toBe(0);
  });
});

test('A restart keeps the plants, and takes the token from .env', async () => {
  await writeFile(join(folder, '.env'), 'ACCESS_TOKENS=from-file\n');
  const createInARun = async (name: string, signal: NodeJS.Signals) => {
    const service = start(database.env);
    const [, base = ''] = await service.says(/listens on (\S+)/);
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

test('A variable of the environment outweighs the same one in .env', async () => {
  await writeFile(join(folder, '.env'), 'ACCESS_TOKENS=from-file\n');
  const service = start({ ...database.env, ACCESS_TOKENS: 'from-environment' });
  const [, base = ''] = await service.says(/listens on (\S+)/);
  const statusWith = async (token: string) =>
    (await fetch(`${base}/plants`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } })).status;
  // 400: the token is accepted, and the body is missing.
  expect([await statusWith('from-environment'), await statusWith('from-file')]).toEqual([400, 401]);
  await service.stop();
  await rm(join(folder, '.env'));
});

// In a process of its own: in Jest's, Web Crypto's DOMException is no Error, and would be taken for a refusal anyway.
test('A token is refused if the issuer publishes its key malformed', async () => {
  const point = 'A'.repeat(43);
  const keys = [{ kty: 'EC', crv: 'P-256', x: point, y: point, kid: 'broken', alg: 'ES256' }];
  const issuer = createHttpServer((_, response) => response.end(JSON.stringify({ keys }))).listen(
    0,
    '127.0.0.1',
  );
  await once(issuer.unref(), 'listening');
  const { port } = issuer.address() as AddressInfo;
  const jwt = { JWT_JWKS_URL: `http://127.0.0.1:${port}`, JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' };
  const service = start({ ...database.env, ...jwt });
  const [, base = ''] = await service.says(/listens on (\S+)/);
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const token = `${encode({ alg: 'ES256', kid: 'broken' })}.${encode({ exp: 9_999_999_999 })}.${'A'.repeat(86)}`;
  const { status } = await fetch(`${base}/plants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
  });
  expect(status).toBe(401);
  expect((await service.stop()).output).not.toContain('"level":50');
});

test('Reports every fault of the environment, and exits with 1', async () => {
  const { code, output } = await start({ PORT: 'x', METRICS: 'x', NODE_ENV: 'production' }).exit;
  expect(code).toBe(1);
  for (const name of ['PORT', 'METRICS', 'ACCESS_TOKENS', 'DATABASE_URL'])
    expect(output).toContain(`\n  ${name} `);
});

describe('One sentence says what is wrong and what to do:', () => {
  test('the port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, output } = await start({ ...database.env, PORT: String(port), LOG_LEVEL: 'warn' }).exit;
    other.close();
    expect({ code, output }).toEqual({
      code: 1,
      output:
        `Plant Store could not start: port ${port} of 127.0.0.1 is in use, perhaps by a Plant Store that was ` +
        'started before; stop what uses it, or set another (PORT, METRICS_PORT).\n',
    });
  });

  test('another service holds the data folder', async () => {
    const dataDir = await mkdtemp(join(folder, 'data-'));
    const env = { DATA_DIR: dataDir, LOG_LEVEL: 'warn' };
    const first = start(env);
    await until('the folder is locked', async () => (await readdir(dataDir)).includes('lock.1'));
    const { code, output } = await start(env).exit;
    expect(code).toBe(1);
    expect(output).toMatch(
      new RegExp(
        `^Plant Store could not start: \\S+ is in use by process ${first.child.pid} on .*; stop that one, set ` +
          'DATA_DIR to another folder, or point both at a server with DATABASE_URL.\n$',
      ),
    );
    await first.stop('SIGKILL');
  });

  (TEST_DATABASE_URL === undefined ? test.skip : test)('the database does not exist', async () => {
    const url = new URL(TEST_DATABASE_URL as string);
    url.pathname = '/no_such_database';
    const { code, output } = await start({ DATABASE_URL: url.href, LOG_LEVEL: 'warn' }).exit;
    expect({ code, output }).toEqual({
      code: 1,
      output:
        'Plant Store could not start: database "no_such_database" does not exist; create it (createdb), or ' +
        'correct DATABASE_URL.\n',
    });
  });

  test('HOST is not an address of this machine', async () => {
    const { code, output } = await start({ ...database.env, HOST: '192.0.2.1', LOG_LEVEL: 'warn' }).exit;
    expect(code).toBe(1);
    expect(output).toMatch(
      /^Plant Store could not start: .*EADDRNOTAVAIL.*; set HOST to an address of this machine\.\n$/,
    );
  });

  test('.env is malformed, together with the other faults', async () => {
    await writeFile(join(folder, '.env'), '\ufeffACCESS_TOKENS=a\n');
    const { code, output } = await start({ PORT: 'x' }).exit;
    await rm(join(folder, '.env'));
    expect(code).toBe(1);
    expect(output).toMatch(/2 faults:\n {2}\.env line 1 starts with a byte order mark.*\n {2}PORT must be/);
  });
});

test('Says that the database refuses the user, and exits with 1', async () => {
  const refusing = createServer((socket) => {
    socket.on('error', () => undefined);
    // PostgreSQL answers a wrong password with an ErrorResponse, SQLSTATE 28P01.
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
  expect(output).toContain(
    'Plant Store could not start: password authentication failed for user "u"; correct the user and the password',
  );
  expect(output).not.toContain('hunter2');
});

test('While the database cannot be reached, the service is live and not ready, answers 503, and waits', async () => {
  const service = start({
    DATABASE_URL: 'postgres://u@127.0.0.1:1/d',
    ACCESS_TOKENS: 't',
    PORT: '0',
    LOG_LEVEL: 'info',
  });
  const [, port = ''] = await service.says(/"port":(\d+),"msg":"Listening"/);
  await service.says(/cannot be reached yet/);
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

describe('The output of the service', () => {
  const stdoutOf = (child: ChildProcess) => {
    let text = '';
    child.stdout?.on('data', (data: Buffer) => (text += data.toString()));
    return () => text;
  };

  test('has only log lines on standard output if that is not a terminal', async () => {
    const service = start(database.env);
    const stdout = stdoutOf(service.child);
    await service.says(/curl -X POST .*/);
    expect((await service.stop()).code).toBe(0);
    const lines = stdout().trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(
      expect.arrayContaining(['Listening', 'Stopped']),
    );
  });

  needs('script')('at a terminal', () => {
    test('has readable lines, and the greeting', async () => {
      const child = spawn('script', ['-qec', `exec ${process.execPath} ${MAIN}`, '/dev/null'], {
        cwd: folder,
        env: { PATH: process.env.PATH, PORT: '0', ...database.env },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      children.push(child);
      const stdout = stdoutOf(child);
      await until('the greeting is there', () => {
        if (child.exitCode !== null) throw new Error(stdout());
        return stdout().includes('curl -X POST');
      });
      expect(stdout()).toMatch(/^\d\d:\d\d:\d\d info {2}Listening host=127\.0\.0\.1 port=\d+\r?$/m);
      expect(stdout()).not.toContain('"msg"');
      // Ctrl-C: the terminal turns it into SIGINT.
      child.stdin.write('\x03');
      expect(await once(child, 'exit')).toEqual([0, null]);
      expect(stdout()).toContain('Stopped');
    });
  });

  test('may be read by nobody: the service still serves and stops', async () => {
    const service = start({ ...database.env, ACCESS_TOKENS: 't', METRICS: 'on', LOG_LEVEL: 'info' });
    const [, base = ''] = await service.says(/listens on (\S+)/);
    service.child.stdout.destroy();
    service.child.stderr.destroy();
    for (let request = 0; request < 5; request++) {
      const { status } = await fetch(`${base}/plants`, {
        method: 'POST',
        headers: { Authorization: 'Bearer t', 'Content-Type': 'application/json' },
        body: '{"id":4711,"name":"a"}',
      });
      expect(status).toBe(200);
      // Long enough for the buffered lines to be written.
      await new Promise((next) => setTimeout(next, 250));
    }
    expect((await service.stop()).code).toBe(0);
  });
});

test('The service loads no rule of class-validator and none of their dependencies, and no database that it does not use', () => {
  const script = `
    import { createRequire } from 'node:module';
    await import('./dist/src/app.js');
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));
  `;
  const listed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  const files = JSON.parse(listed) as string[];
  expect(files.filter((file) => /class-validator/.test(file))).not.toEqual([]);
  expect(
    files.filter((file) => /libphonenumber|[/]validator[/]|class-validator[/]cjs[/]index|pglite/.test(file)),
  ).toEqual([]);
});
