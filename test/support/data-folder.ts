import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/** A data folder for the embedded database, empty at first. */
export class DataFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'plant-store-data-'));

  /** The folder of the embedded database, once a service made it. */
  readonly database = join(this.path, 'postgres');

  query<Row>(sql: string): Promise<Row[]> {
    return queryEmbedded(this.path, sql);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Runs one statement on the embedded database of a data folder. No service may have it open. */
export async function queryEmbedded<Row>(dataDir: string, sql: string): Promise<Row[]> {
  const database = await PGlite.create(join(dataDir, 'postgres'));
  try {
    return (await database.query<Row>(sql)).rows;
  } finally {
    await database.close();
  }
}
