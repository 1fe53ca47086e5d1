import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import type { Logger } from 'pino';
import { lockFolder } from './folder-lock.js';

/** A PostgreSQL inside this process, kept in a folder. */
export interface EmbeddedPostgres {
  /** What `pg` uses in place of a socket. It serves one session, so the pool must have one client. */
  openStream: () => Duplex;
  close: () => Promise<void>;
}

/** Inside the data folder: the database, and the name it has until it is complete. */
const DATABASE = 'postgres';
const UNFINISHED = 'postgres.unfinished';

/** PostgreSQL's own lock. It never starts again where a kill left this file empty: made, and not yet written. */
const POSTMASTER_PID = 'postmaster.pid';

/**
 * Opens the database of a data folder and makes it where there is none. A database that is being made gets its name
 * when it is complete, so a process that is killed at any moment leaves either none or a whole one.
 *
 * @throws {FolderHeldError} where another process uses the folder.
 */
export async function openEmbeddedPostgres(dataDir: string, logger: Logger): Promise<EmbeddedPostgres> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const unlock = await lockFolder(dataDir);
  try {
    const folder = join(dataDir, DATABASE);
    if (!existsSync(folder)) {
      logger.info(
        `Making the embedded database in ${resolve(dataDir)}; this takes a few seconds, and happens once`,
      );
      await removeUnfinished(dataDir);
      const unfinished = join(dataDir, `${UNFINISHED}.${process.pid}`);
      await (await PGlite.create(unfinished)).close();
      await rename(unfinished, folder);
    }
    // The lock on the data folder says already that nobody else is here.
    await rm(join(folder, POSTMASTER_PID), { force: true });
    const database = await PGlite.create(folder);
    return {
      openStream: () => new SessionStream(database),
      close: async () => {
        await database.close();
        await unlock();
      },
    };
  } catch (error) {
    await unlock();
    throw error;
  }
}

async function removeUnfinished(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (name.startsWith(UNFINISHED)) await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

/** PostgreSQL's wire protocol to PGlite and back, with as much of `net.Socket` as `pg` calls. */
class SessionStream extends Duplex {
  constructor(private readonly database: PGlite) {
    super();
  }

  connect(): this {
    // There is one backend for all sessions that come one after the other. It does not notice that a session is gone, and
    // would go on with the transaction of that one: the next session's rows would wait for a commit that never comes.
    this.database.exec('ROLLBACK; DEALLOCATE ALL').then(
      () => this.emit('connect'),
      (error: unknown) => this.destroy(error as Error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // The answers are pushed as they come.
  }

  override _write(message: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.database.execProtocolRaw(message).then(
      (answer) => {
        this.push(Buffer.from(answer));
        done();
      },
      (error: unknown) => done(error as Error),
    );
  }

  override _writev(messages: { chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(messages.map(({ chunk }) => chunk)), 'binary', done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }
}
