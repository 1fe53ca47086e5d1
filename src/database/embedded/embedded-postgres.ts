import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import type { Logger } from 'pino';
import {
  cannotOpen,
  checkNeverHadDatabase,
  checkNothingForeign,
  checkPresent,
  closeToOthers,
  DATABASE,
  DataFolderError,
  hasDatabase,
  isEmpty,
  REQUIRED,
  UNFINISHED,
} from './data-folder.js';
import {
  closeAndSyncTree,
  DURABLE_START_PARAMETERS,
  DurableNodeFS,
  makeFolder,
  syncFolder,
} from './durable-files.js';
import { lockFolder } from './folder-lock.js';
import { SessionStream } from './session-stream.js';

/** A PostgreSQL inside this process, stored in a folder. */
export interface EmbeddedPostgres {
  /** Replaces the socket of `pg`. It serves one session, so the pool must have one client. */
  openStream: () => Duplex;
  close: () => Promise<void>;
}

/**
 * PGlite fills them with zeros at the start. PostgreSQL's default, 128 MB, takes 0.2 s and 100 MiB more, and is faster
 * only beyond a million plants, whose index no longer fits into this.
 */
const SHARED_BUFFERS = '32MB';

/** PostgreSQL's own lock. PostgreSQL does not start if a kill left this file empty. */
const POSTMASTER_PID = 'postmaster.pid';

/** The files of all tables and indexes, relative to the folder of the database. */
const RELATION_FILES = `SELECT pg_relation_filepath(oid) AS path FROM pg_class
  WHERE relpersistence <> 't' AND pg_relation_filepath(oid) IS NOT NULL
  ORDER BY path`;

/**
 * Opens the database of a data folder, or creates it if the folder is empty. A new database gets its name when it is
 * complete and on the disk, so a kill or a power cut leaves either none or a whole one. What PostgreSQL commits is on
 * the disk before it answers.
 *
 * If PostgreSQL panics later, for example because the disk fails, the process ends. The next start recovers what was
 * committed.
 *
 * @throws {FolderHeldError} if another process uses the folder.
 * @throws {DataFolderError} if the folder holds anything but a whole database of this version of PostgreSQL.
 */
export async function openEmbeddedPostgres(dataDir: string, logger: Logger): Promise<EmbeddedPostgres> {
  makeFolder(dataDir);
  checkNothingForeign(dataDir);
  if (isEmpty(dataDir)) makeUnfinished(dataDir);
  closeToOthers(dataDir);
  const unlock = await lockFolder(dataDir);
  try {
    if (!hasDatabase(dataDir)) {
      checkNeverHadDatabase(dataDir);
      logger.info(
        `Making the embedded database in ${resolve(dataDir)}; this takes a few seconds, and happens once`,
      );
      await makeDatabase(dataDir);
    }
    removeUnfinished(dataDir);
    const database = await openDatabase(join(dataDir, DATABASE), logger);
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

async function makeDatabase(dataDir: string): Promise<void> {
  const unfinished = makeUnfinished(dataDir);
  removeUnfinished(dataDir, unfinished);
  await (await PGlite.create(unfinished)).close();
  closeAndSyncTree(unfinished);
  renameSync(unfinished, join(dataDir, DATABASE));
  syncFolder(dataDir);
}

/** @returns the path of a new folder for a database that is being created. */
function makeUnfinished(dataDir: string): string {
  const folder = join(dataDir, `${UNFINISHED}.${randomBytes(4).toString('hex')}`);
  mkdirSync(folder, { mode: 0o700 });
  syncFolder(dataDir);
  return folder;
}

function removeUnfinished(dataDir: string, except?: string): void {
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    if (name.startsWith(UNFINISHED) && path !== except) rmSync(path, { recursive: true, force: true });
  }
}

async function openDatabase(folder: string, logger: Logger): Promise<PGlite> {
  checkPresent(folder, REQUIRED);
  if (closeToOthers(folder)) closeAndSyncTree(folder);
  // The lock on the data folder already excludes other processes.
  rmSync(join(folder, POSTMASTER_PID), { force: true });
  const log: string[] = [];
  let isOpen = false;
  try {
    const database = await PGlite.create({
      fs: new DurableNodeFS(folder),
      startParams: [...DURABLE_START_PARAMETERS, '-c', `shared_buffers=${SHARED_BUFFERS}`],
      onStderr: (line) => {
        if (!isOpen) log.push(line);
        else if (line.includes('PANIC:')) endProcess(line, logger);
        return true;
      },
    });
    isOpen = true;
    const files = await database.query<{ path: string }>(RELATION_FILES);
    checkPresent(
      folder,
      files.rows.map(({ path }) => path),
    );
    return database;
  } catch (error) {
    throw error instanceof DataFolderError ? error : cannotOpen(folder, log, error);
  }
}

/** After a panic PGlite would loop forever, without a working database. */
function endProcess(panic: string, logger: Logger): never {
  logger.fatal({ panic }, 'The embedded database cannot go on; the next start recovers what was committed');
  process.exit(1);
}
