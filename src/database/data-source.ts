import type { Logger } from 'pino';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { Pool } from 'pg';
import { MIGRATIONS } from '../../migrations/index.js';
import type { Config } from '../config/config.js';
import { parseDatabaseUrl } from '../config/database-url.js';
import { PlantEntity } from '../plants/plant.entity.js';
import type { EmbeddedPostgres } from './embedded/embedded-postgres.js';
import { DatabaseFault } from './errors.js';
import { Session } from './session.js';

/**
 * The database of the service, the migrations and TypeORM's command line: a server if `config.url` is set, else the
 * embedded database.
 */
export function createDataSource(config: Config['database'], logger: Logger): DataSource {
  const options: DataSourceOptions = {
    type: 'postgres',
    applicationName: 'plant-store',
    entities: [PlantEntity],
    migrations: MIGRATIONS,
    migrationsTableName: 'migrations',
    // Only migrations change the schema.
    synchronize: false,
    installExtensions: false,
    logging: false,
    connectTimeoutMS: config.timeoutMs,
    poolErrorHandler: () => undefined,
  };
  if (config.url === undefined) return new EmbeddedDataSource(options, config.dataDir, logger);
  // TypeORM would read the URL with its own parser, which knows less than the driver's.
  const extra = { Client: Session, keepAlive: true, ...parseDatabaseUrl(config.url) };
  return new DataSource({ ...options, poolSize: config.poolSize, extra });
}

/** @returns the pool of connections, or undefined if the data source is not initialized. */
export function poolOf(dataSource: DataSource): Pool | undefined {
  return (dataSource.driver as { master?: Pool }).master;
}

/** Opens the embedded database when it is initialized and closes it when it is destroyed. */
class EmbeddedDataSource extends DataSource {
  #embedded: EmbeddedPostgres | undefined;

  constructor(
    options: DataSourceOptions,
    private readonly dataDir: string,
    private readonly log: Logger,
  ) {
    super({ ...options, poolSize: 1 } as DataSourceOptions);
  }

  override async initialize(): Promise<this> {
    // Loaded only if it is used: 3 % of the start.
    const { openEmbeddedPostgres } = await import('./embedded/embedded-postgres.js');
    try {
      this.#embedded ??= await openEmbeddedPostgres(this.dataDir, this.log);
    } catch (error) {
      throw new DatabaseFault((error as Error).message, { cause: error });
    }
    const { openStream } = this.#embedded;
    // All are set, since `pg` reads the others from the PG* environment variables.
    const session = {
      ...{ user: 'postgres', database: 'postgres', host: 'embedded', port: 5432, options: ' ' },
      ...{ ssl: false, sslnegotiation: 'postgres', client_encoding: 'UTF8', replication: 'false' },
    };
    this.setOptions({
      extra: { Client: Session, stream: openStream, idleTimeoutMillis: 0, ...session },
    });
    return super.initialize();
  }

  override async destroy(): Promise<void> {
    if (this.isInitialized) await super.destroy();
    await this.#embedded?.close();
    this.#embedded = undefined;
  }
}
