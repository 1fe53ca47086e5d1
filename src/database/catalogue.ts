import type { DataSource } from 'typeorm';
import { DatabaseFault } from './errors.js';

/** Where the service's table is. */
interface Place {
  database: string;
  /** The schema in which statements find the table by their search_path, or null if there is no table. */
  schema: string | null;
}

/** @throws {DatabaseFault} if the database's encoding is not UTF-8, so that it cannot hold every text. */
export async function checkEncoding(dataSource: DataSource): Promise<void> {
  const [row] = await dataSource.query<{ name: string; encoding: string }[]>(
    "SELECT current_database() AS name, current_setting('server_encoding') AS encoding",
  );
  if (row === undefined || row.encoding === 'UTF8') return;
  throw new DatabaseFault(
    `The database ${row.name} has the encoding ${row.encoding}, which cannot hold every text. Make it with ENCODING 'UTF8' TEMPLATE template0`,
  );
}

/** @param runner a query runner of the data source, or the data source itself. */
export async function placeOf(dataSource: DataSource, runner: Pick<DataSource, 'query'>): Promise<Place> {
  const [place] = await runner.query<Place[]>(
    `SELECT current_database() AS database, (
       SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
       WHERE pg_class.oid = to_regclass($1)
     ) AS schema`,
    [dataSource.entityMetadatas[0]?.tableName],
  );
  return place as Place;
}
