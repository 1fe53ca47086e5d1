import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { DataSource } from 'typeorm';
import { FolderHeldError, lockFolder } from '../src/database/embedded/folder-lock.js';
import { DataFolder } from './support/data-folder.js';
import { expectError, post } from './support/requests.js';
import { rowOf, startService, unusedId, type TestService } from './support/service.js';
import { undoAfterEach } from './support/undo.js';

const TIMEOUT_MS = 2_000;

describe('The embedded database', () => {
  const folder = new DataFolder();
  const database = { env: { DATA_DIR: folder.path }, drop: () => Promise.resolve() };
  let service: TestService;

  beforeAll(async () => {
    service = await start();
  });

  afterAll(async () => {
    await service.stop();
    folder.remove();
  });

  const start = () => startService({ database, env: { DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) } });
  const create = (id: bigint) => post(service.port, `{"id":${id},"name":"a"}`);
  const ready = async () => (await fetch(`${service.url}/health/ready`)).status;

  test('has one session: while a transaction of another keeps it, creates are 503 in time, and 200 afterwards', async () => {
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

  test('forgets the transaction of a session that was lost', async () => {
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

  test('starts although a kill left the lock of PostgreSQL empty', async () => {
    await service.stop();
    writeFileSync(join(folder.database, 'postmaster.pid'), '');
    service = await start();
    expect((await create(unusedId())).status).toBe(200);
  });

  test('knows nothing of the PG* variables of the environment', async () => {
    const variables = {
      PGHOST: 'nowhere.invalid',
      PGUSER: 'nobody',
      PGDATABASE: 'nothing',
      PGOPTIONS: '-c search_path=nowhere',
      PGSSLMODE: 'require',
      PGSSLNEGOTIATION: 'direct',
    };
    await service.stop();
    Object.assign(process.env, variables);
    try {
      service = await start();
      expect((await create(unusedId())).status).toBe(200);
    } finally {
      for (const name of Object.keys(variables)) Reflect.deleteProperty(process.env, name);
    }
  });

  test('is not opened twice: a second service says who holds the folder, and does not start', async () => {
    await expect(startService({ database })).rejects.toThrow(
      new RegExp(`^${folder.path} is in use by process ${process.pid} on .+, since \\d{4}-`),
    );
    expect((await create(unusedId())).status).toBe(200);
  });

  test('keeps columns and rows that the service does not know, over a restart', async () => {
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

describe('The lock of a data folder', () => {
  const undo = undoAfterEach();

  function makeFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-lock-'));
    undo(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  /** A process that listens as a holder of the lock does, and says nothing. */
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

  test('is free again when it is given back, and leaves one socket behind', async () => {
    const folder = makeFolder();
    for (let round = 0; round < 3; round++) {
      const unlock = await lockFolder(folder);
      await expect(lockFolder(folder)).rejects.toThrow(FolderHeldError);
      await unlock();
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('lock.'))).toEqual(['lock.3']);
  });

  test('goes to one of 30 that want it at once from a holder that was killed', async () => {
    const folder = makeFolder();
    await kill(await startHolder(folder));
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => lockFolder(folder)));
    const held = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(held).toHaveLength(1);
    await held[0]?.();
  });

  test('stays with a holder that is frozen, also when no more callers can be put in its line', async () => {
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

  test('is the same by whatever path the folder is reached, however long', async () => {
    const parent = makeFolder();
    const folder = join(parent, 'x'.repeat(120));
    mkdirSync(folder);
    symlinkSync(folder, join(parent, 'link'));
    const unlock = await lockFolder(folder);
    await expect(lockFolder(join(parent, 'link'))).rejects.toThrow(`is in use by process ${process.pid} on `);
    await unlock();
  });
});
