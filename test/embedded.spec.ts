import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import { pino } from 'pino';
import { DataSource } from 'typeorm';
import { DURABLE_START_PARAMETERS, DurableNodeFS } from '../src/database/embedded/durable-files.js';
import { openEmbeddedPostgres } from '../src/database/embedded/embedded-postgres.js';
import { FolderHeldError, lockFolder } from '../src/database/embedded/folder-lock.js';
import { DataFolder } from './support/data-folder.js';
import { readiness } from './support/operations.js';
import { expectError, post } from './support/requests.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';
import { ServiceProcess } from './support/service-process.js';
import { undoAfterEach } from './support/undo.js';

const TIMEOUT_MS = 2_000;

/** A data folder as openEmbeddedPostgres() leaves it, made once. */
const whole = new DataFolder();

beforeAll(async () => {
  await (await openEmbeddedPostgres(whole.path, pino({ level: 'silent' }))).close();
});
afterAll(() => whole.remove());

function copyOfWhole(): DataFolder {
  const folder = new DataFolder();
  cpSync(whole.database, folder.database, { recursive: true });
  writeFileSync(join(folder.path, 'lock-holder'), 'process 1 on somewhere', { mode: 0o600 });
  return folder;
}

describe('The embedded database', () => {
  let folder: DataFolder;
  let service: TestService;

  beforeAll(async () => {
    folder = copyOfWhole();
    service = await start();
  });

  afterAll(async () => {
    await service.stop();
    folder.remove();
  });

  const start = () =>
    startService({
      database: { env: { DATA_DIR: folder.path }, drop: () => Promise.resolve() },
      env: { DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) },
    });
  const create = (id: bigint) => post(service.port, `{"id":${id},"name":"a"}`);
  const ready = () => readiness(service);

  test('has small buffers, so that it starts soon and takes little memory', async () => {
    expect(await service.sql('SHOW shared_buffers')).toEqual([{ shared_buffers: '32MB' }]);
  });

  test('has one session: while another transaction holds it, creates are answered 503 in time, and 200 afterwards', async () => {
    const other = service.app.get(DataSource).createQueryRunner();
    await other.startTransaction();
    const ids = Array.from({ length: 5 }, unusedId);
    for (const answer of await Promise.all(ids.map(create))) {
      expectError(answer, 503);
      expect(answer.headers['retry-after']).toBe('1');
    }
    expect(await ready()).toBe(503);
    await other.rollbackTransaction();
    await other.release();
    for (const id of ids) {
      expect((await create(id)).status).toBe(200);
      expect(await rowOf(service, id)).toEqual({ id: id.toString(), name: 'a', tag: null });
    }
    expect(await ready()).toBe(200);
  });

  test('rolls back the transaction of a lost session', async () => {
    const [lost, kept] = [unusedId(), unusedId()];
    const other = service.app.get(DataSource).createQueryRunner();
    await other.startTransaction();
    await other.query(`INSERT INTO plants (id, name) VALUES (${lost}, 'a')`);
    const client = (await other.connect()) as { connection: { stream: Duplex } };
    client.connection.stream.destroy(new Error('lost'));
    expect((await create(kept)).status).toBe(200);
    await service.stop();
    service = await start();
    expect([await rowOf(service, lost), (await rowOf(service, kept))?.id]).toEqual([
      undefined,
      kept.toString(),
    ]);
  });

  test('starts even if a kill left an empty postmaster.pid', async () => {
    await service.stop();
    writeFileSync(join(folder.database, 'postmaster.pid'), '');
    service = await start();
    expect((await create(unusedId())).status).toBe(200);
  });

  test('is never open twice: a second service says who holds the folder, and does not start', async () => {
    await expect(start()).rejects.toThrow(
      new RegExp(`^${folder.path} is in use by process ${process.pid} on .+, since \\d{4}-`),
    );
    expect((await create(unusedId())).status).toBe(200);
  });

  test('keeps columns that the service does not know over a restart', async () => {
    const id = unusedId();
    await service.sql('ALTER TABLE plants ADD extra text');
    await service.sql(`INSERT INTO plants (id, name, extra) VALUES (${id}, 'a', 'kept')`);
    await service.stop();
    service = await start();
    expect(await service.sql(`SELECT extra FROM plants WHERE id = ${id}`)).toEqual([{ extra: 'kept' }]);
    expect((await create(id)).status).toBe(200);
    expect((await create(unusedId())).status).toBe(200);
  });
});

describe('A data folder', () => {
  const undo = undoAfterEach();

  function copy(): DataFolder {
    const folder = copyOfWhole();
    undo(() => folder.remove());
    return folder;
  }

  const startOn = (folder: DataFolder, env: Record<string, string> = {}) =>
    startService({ database: { env: { DATA_DIR: folder.path, ...env }, drop: () => Promise.resolve() } });

  function openToOthers(folder: string): string[] {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (name) => (statSync(join(folder, name)).mode & 0o077) !== 0,
    );
  }

  test.each<[string, (folder: DataFolder) => void, RegExp]>([
    [
      'has lost PG_VERSION',
      ({ database }) => rmSync(join(database, 'PG_VERSION')),
      /^The database in .+postgres has lost files: it holds base, global, .+, but PG_VERSION is missing\. To mend it, restore .+ backup/,
    ],
    [
      'has lost the files of a table and of an index',
      ({ database }) => ['2613', '2683'].forEach((name) => rmSync(join(database, 'base/5', name))),
      /but base\/5\/2613, base\/5\/2683 are missing/,
    ],
    [
      'has lost its write-ahead log',
      ({ database }) => rmSync(join(database, 'pg_wal', '000000010000000000000001')),
      /^The database in .+ does not open: could not locate a valid checkpoint record at \S+\. If it is damaged, restore /,
    ],
    [
      'belongs to another version of PostgreSQL',
      ({ database }) => writeFileSync(join(database, 'PG_VERSION'), '17\n'),
      /does not open: .+ PostgreSQL version 17, .+ this version 18\.\d+\. If another release made it, move the plants as docs\/OPERATIONS\.md says/,
    ],
    [
      'has lost its database',
      ({ database }) => rmSync(database, { recursive: true }),
      /^The data folder .+ had a database once: it holds lock-holder.*, but its folder postgres is missing\./,
    ],
    [
      'is the database folder itself',
      ({ path, database }) => {
        cpSync(database, path, { recursive: true });
        rmSync(database, { recursive: true });
      },
      /^The data folder .+ holds PG_VERSION, base, .+ and no database: its folder postgres is missing\. Set DATA_DIR to/,
    ],
  ])('that %s is refused and not changed', async (_, damage, message) => {
    const folder = copy();
    damage(folder);
    const before = readdirSync(folder.path, { recursive: true, encoding: 'utf8' });
    await expect(startOn(folder)).rejects.toThrow(message);
    const added = readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).filter(
      (name) => !before.includes(name),
    );
    expect(added.filter((name) => !/^lock\.\d+$|postmaster\.pid$/.test(name))).toEqual([]);
  });

  test('that other users can read becomes private, and so do new files in it', async () => {
    const folder = copy();
    for (const path of [folder.path, folder.database]) chmodSync(path, 0o755);
    chmodSync(join(folder.database, 'global/pg_control'), 0o666);
    const service = await startOn(folder);
    try {
      expect((await post(service.port, '{"id":1,"name":"a"}')).status).toBe(200);
      await service.sql('CHECKPOINT');
      expect(statSync(folder.path).mode & 0o777).toBe(0o700);
      expect(openToOthers(folder.path)).toEqual([]);
    } finally {
      await service.stop();
    }
  });

  test('is private when it is made, whatever the umask', () => {
    expect(openToOthers(whole.path)).toEqual([]);
  });

  test('ignores the PG... variables of the environment', async () => {
    const service = await ServiceProcess.start({
      DATA_DIR: copy().path,
      PGHOST: '192.0.2.1',
      PGPORT: '1',
      PGUSER: 'nobody',
      PGPASSWORD: 'wrong',
      PGDATABASE: 'nothing',
      PGOPTIONS: '-c default_transaction_read_only=on',
      PGSSLMODE: 'require',
      PGSSLNEGOTIATION: 'direct',
      PGCLIENT_ENCODING: 'LATIN1',
      PGAPPNAME: 'other',
      PGREPLICATION: 'database',
      PGCONNECT_TIMEOUT: '1',
      PGTZ: 'Asia/Tokyo',
    });
    undo(() => service.end('SIGKILL'));
    const plant = '{"id":1,"name":"\u{1F335} \u017f"}';
    for (const expected of [plant, plant]) {
      expect(await post(service.port, expected)).toMatchObject({
        status: 200,
        json: { name: '\u{1F335} \u017f' },
      });
    }
  });

  test('has each commit forced to the disk', async () => {
    const service = await startOn(copy());
    try {
      const settings = await service.sql(
        `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_sync_method') ORDER BY name`,
      );
      expect(settings).toEqual([
        { name: 'fsync', setting: 'on' },
        { name: 'full_page_writes', setting: 'on' },
        { name: 'synchronous_commit', setting: 'on' },
        // The only method that PGlite implements.
        { name: 'wal_sync_method', setting: 'fsync' },
      ]);
    } finally {
      await service.stop();
    }
  });

  test('has its commits forced to the disk by PGlite, with the fsync of its file system', async () => {
    const database = await PGlite.create({
      fs: new DurableNodeFS(copy().database),
      startParams: DURABLE_START_PARAMETERS,
    });
    undo(() => database.close());
    const { NODEFS } = database.Module as unknown as {
      NODEFS: { stream_ops: { fsync: (stream: object) => number } };
    };
    const { fsync } = NODEFS.stream_ops;
    let forced = 0;
    NODEFS.stream_ops.fsync = (stream) => {
      forced++;
      return fsync(stream);
    };
    await database.exec('CREATE TABLE plants (id bigint)');
    const before = forced;
    await database.exec('INSERT INTO plants VALUES (1)');
    expect(forced).toBeGreaterThan(before);
  });

  test('lets creates that arrive together share a commit', async () => {
    const service = await startOn(copy(), { METRICS: 'on' });
    try {
      const ids = Array.from({ length: 64 }, unusedId);
      const before = await commits(service);
      const answers = await Promise.all(ids.map((id) => post(service.port, `{"id":${id},"name":"a"}`)));
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      expect((await commits(service)) - before).toBeLessThan(ids.length);
    } finally {
      await service.stop();
    }
  });

  async function commits(service: TestService): Promise<number> {
    const [row] = await service.sql<{ fsyncs: string }>(
      `SELECT sum(fsyncs) AS fsyncs FROM pg_stat_io WHERE object = 'wal'`,
    );
    return Number(row?.fsyncs);
  }
});

describe('The lock of a data folder', () => {
  const undo = undoAfterEach();

  function makeFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-lock-'));
    undo(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  /** Starts a process that listens as the holder of the lock does, and never answers. */
  async function startHolder(folder: string): Promise<ChildProcess> {
    const code = `require('net').createServer(() => {}).listen(${JSON.stringify(join(folder, 'lock.7'))}, 1, () => console.log('up'))`;
    const holder = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    undo(() => holder.kill('SIGKILL'));
    await once(holder.stdout, 'data');
    return holder;
  }

  async function kill(holder: ChildProcess): Promise<void> {
    holder.kill('SIGKILL');
    await once(holder, 'exit');
  }

  test('is free after it is released, and leaves one socket behind', async () => {
    const folder = makeFolder();
    for (let round = 0; round < 3; round++) {
      const unlock = await lockFolder(folder);
      await expect(lockFolder(folder)).rejects.toThrow(FolderHeldError);
      await unlock();
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('lock.'))).toEqual(['lock.3']);
  });

  test('goes to one of 30 callers after its holder is killed', async () => {
    const folder = makeFolder();
    await kill(await startHolder(folder));
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => lockFolder(folder)));
    const held = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(held).toHaveLength(1);
    await held[0]?.();
  });

  test('stays with a frozen holder, even if its listen queue is full', async () => {
    const folder = makeFolder();
    const holder = await startHolder(folder);
    holder.kill('SIGSTOP');
    const callers: Socket[] = [];
    undo(() => {
      for (const caller of callers) caller.destroy();
    });
    for (let isFull = false; !isFull;) {
      await expect(lockFolder(folder)).rejects.toThrow('is in use by a process that does not answer');
      const caller = connect(join(folder, 'lock.7'));
      callers.push(caller);
      isFull = await new Promise((done) => {
        caller.once('connect', () => done(false)).once('error', () => done(true));
      });
    }
    await expect(lockFolder(folder)).rejects.toThrow('is in use by a process that does not answer');
    await kill(holder);
    await (
      await lockFolder(folder)
    )();
  });

  test('is the same for every path to the folder, however long', async () => {
    const parent = makeFolder();
    const folder = join(parent, 'x'.repeat(120));
    mkdirSync(folder);
    symlinkSync(folder, join(parent, 'link'));
    const unlock = await lockFolder(folder);
    await expect(lockFolder(join(parent, 'link'))).rejects.toThrow(`is in use by process ${process.pid} on `);
    await unlock();
  });

  test('of a folder with a long path is never kept where another user could remove it', async () => {
    const folder = join(makeFolder(), 'x'.repeat(120));
    mkdirSync(folder);
    const digest = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 32);
    const place = join(tmpdir(), `plant-store-${digest}`);
    mkdirSync(place, { mode: 0o777 });
    undo(() => rmSync(place, { recursive: true, force: true }));
    chmodSync(place, 0o777);
    await expect(lockFolder(folder)).rejects.toThrow(
      `${folder} cannot be locked: the folder ${place} must be this user's own, with mode 0700`,
    );
    chmodSync(place, 0o700);
    await (
      await lockFolder(folder)
    )();
  });
});
