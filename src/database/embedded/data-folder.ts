import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The data folder cannot be used. The message names the folder, the cause and what to do. */
export class DataFolderError extends Error {
  override name = 'DataFolderError' as const;
}

/** The database's name in the data folder, and the start of its name until it is complete. */
export const DATABASE = 'postgres';
export const UNFINISHED = 'postgres.unfinished';

/** The names of locks and unfinished databases in the data folder. */
const OWN_NAMES = /^(lock\.\d+|lock-[0-9a-f]{8}|lock-holder|postgres\.unfinished\.\w+)$/;
/** A new ext4 volume has this folder. */
const LOST_AND_FOUND = 'lost+found';

/** What every database has: all that initdb creates, except the files of tables. */
export const REQUIRED = [
  ...['PG_VERSION', 'base/1', 'base/4', 'base/5/PG_VERSION', 'base/5/pg_filenode.map', 'global/pg_control'],
  ...['global/pg_filenode.map', 'pg_commit_ts', 'pg_dynshmem', 'pg_hba.conf', 'pg_ident.conf'],
  ...[
    'pg_logical/mappings',
    'pg_logical/snapshots',
    'pg_multixact/members/0000',
    'pg_multixact/offsets/0000',
  ],
  ...['pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat', 'pg_stat_tmp', 'pg_subtrans'],
  ...['pg_tblspc', 'pg_twophase', 'pg_wal', 'pg_xact', 'postgresql.conf'],
];
const NAMES_TOLD = 12;

const RESTORE =
  'restore the data folder from a backup; to start without plants, set DATA_DIR to an empty folder.';

export function isEmpty(dataDir: string): boolean {
  return readdirSync(dataDir).every((name) => name === LOST_AND_FOUND);
}

export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, DATABASE));
}

/** @throws {DataFolderError} if the data folder has no database but contains something that is not this service's. */
export function checkNothingForeign(dataDir: string): void {
  if (hasDatabase(dataDir)) return;
  const foreign = readdirSync(dataDir).filter((name) => name !== LOST_AND_FOUND && !OWN_NAMES.test(name));
  if (foreign.length === 0) return;
  throw new DataFolderError(
    `The data folder ${dataDir} holds ${list(foreign)} and no database: its folder ${DATABASE} is missing. ` +
      'Set DATA_DIR to the folder that has it, or to an empty or new folder.',
  );
}

/**
 * Call this only with the lock and if there is no database. An unfinished database is created before the first lock, so
 * a folder that has only locks has lost its database.
 *
 * @throws {DataFolderError} if the folder had a database.
 */
export function checkNeverHadDatabase(dataDir: string): void {
  const names = readdirSync(dataDir);
  if (names.some((name) => name.startsWith(UNFINISHED))) return;
  throw new DataFolderError(
    `The data folder ${dataDir} had a database once: it holds ${list(names)}, but its folder ${DATABASE} is missing. To mend it, ${RESTORE}`,
  );
}

/**
 * @param paths relative to the folder of the database.
 * @throws {DataFolderError} if one of them is missing.
 */
export function checkPresent(database: string, paths: string[]): void {
  const missing = paths.filter((path) => !existsSync(join(database, path)));
  if (missing.length === 0) return;
  throw new DataFolderError(
    `The database in ${database} has lost files: it holds ${list(readdirSync(database))}, but ${list(missing)} ` +
      `${missing.length === 1 ? 'is' : 'are'} missing. To mend it, ${RESTORE}`,
  );
}

/**
 * Lets only the owner use a folder. PostgreSQL also refuses a folder that others can enter.
 *
 * @returns whether the folder was open to others before.
 * @throws {DataFolderError} if it cannot be closed.
 */
export function closeToOthers(folder: string): boolean {
  const isOpen = () => process.platform !== 'win32' && (statSync(folder).mode & 0o077) !== 0;
  if (!isOpen()) return false;
  let cause: unknown;
  try {
    chmodSync(folder, 0o700);
  } catch (error) {
    cause = error;
  }
  if (!isOpen()) return true;
  throw new DataFolderError(
    `The folder ${folder} is open to other users, and its mode cannot be changed. Make it 0700, or set DATA_DIR to a new folder inside it.`,
    { cause },
  );
}

/**
 * @param log what PostgreSQL wrote before it gave up.
 * @param cause PGlite's error, which says little.
 */
export function cannotOpen(database: string, log: string[], cause: unknown): DataFolderError {
  const said = log.flatMap((line) => /(?:FATAL|PANIC|DETAIL):\s+(.+?)\.?$/.exec(line)?.[1] ?? []);
  const reason = said.length > 0 ? said.join('; ') : cause instanceof Error ? cause.message : String(cause);
  const otherRelease = reason.includes('incompatible with server')
    ? 'If another release made it, move the plants as docs/OPERATIONS.md says under "Back up and restore". '
    : '';
  return new DataFolderError(
    `The database in ${database} does not open: ${reason}. ${otherRelease}If it is damaged, ${RESTORE}`,
    { cause },
  );
}

function list(names: string[]): string {
  const told = names.slice(0, NAMES_TOLD).join(', ');
  return names.length > NAMES_TOLD ? `${told} and ${names.length - NAMES_TOLD} more` : told || 'nothing';
}
