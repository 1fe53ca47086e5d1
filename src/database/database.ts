import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { PoolClient, QueryResultRow } from 'pg';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import { abandonStatement } from './cancel.js';
import { useEmbedded } from './data-source.js';
import { openEmbeddedPostgres, type EmbeddedPostgres } from './embedded/embedded-postgres.js';
import {
  blamesPreparation,
  isValueError,
  isRetryable,
  maySucceedLater,
  StoreUnavailable,
  ValuesRefused,
} from './errors.js';
import { migrate } from './migrate.js';

/** How often a statement is sent at the most where the database says that it may be sent again. */
const MAX_ATTEMPTS = 4;
const START_RETRY_MS = 500;
/** One in so many failed starts is logged: the first, and then two a minute where each fails at once. */
const ATTEMPTS_PER_LOG_LINE = 60;
const READY_TIMEOUT_MS = 1_000;
/** How long a failed statement counts against the readiness where none succeeds after it, as without traffic. */
const FAILURE_COUNTS_MS = 5_000;

/** A statement with its parameters. With a name it goes out as a prepared statement. */
export interface Statement {
  name?: string;
  text: string;
  values: unknown[];
}

/** The connection to the database: its start, its statements with their time limit, and its end. */
@Injectable()
export class Database implements OnApplicationBootstrap, OnApplicationShutdown {
  /**
   * True when the database can be used for the first time, false where the service was stopped before that.
   * Rejects where it cannot be used without a change of the configuration.
   */
  readonly started: Promise<boolean>;
  #resolveStarted!: (outcome: Promise<boolean>) => void;
  #embedded: EmbeddedPostgres | undefined;
  #usable = false;
  #stopping = false;
  /** When the latest statement failed, in milliseconds of performance.now(), unless one succeeded after it. */
  #failedAt = -Infinity;
  #look: Promise<boolean> | undefined;
  /** Whether statements that have a name go out as prepared statements. */
  #prepares = true;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.started = new Promise((resolve) => (this.#resolveStarted = resolve));
  }

  /** Starts without being waited for: the service listens meanwhile, and says that it is not ready. */
  onApplicationBootstrap(): void {
    const start = this.#start();
    start.catch(() => undefined);
    this.#resolveStarted(start);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#stopping = true;
    await this.started.catch(() => undefined);
    this.#usable = false;
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.#embedded?.close();
  }

  /**
   * Whether plants can be stored now. A look at the table finds a database that cannot be reached and a table that is
   * locked or not there yet; only the creates themselves find a full disk.
   */
  async isReady(): Promise<boolean> {
    if (performance.now() - this.#failedAt < FAILURE_COUNTS_MS) return false;
    // However many ask at once, they get one connection of the pool between them.
    this.#look ??= this.#lookAtTable().finally(() => (this.#look = undefined));
    return this.#look;
  }

  async #lookAtTable(): Promise<boolean> {
    try {
      await this.#run(
        { text: 'SELECT 1 FROM plants WHERE id = 0', values: [] },
        performance.now() + READY_TIMEOUT_MS,
      );
      return true;
    } catch {
      return false;
    }
  }

  /**
   * @param statement a prepared one is parsed and planned once for each session. Where sessions do not keep it, as behind a
   *   pooler that hands them on from transaction to transaction, none is prepared from then on.
   * @param deadline when the statement is given up, in milliseconds of performance.now().
   * @returns the rows.
   * @throws {StoreUnavailable} where the database cannot be reached, fails, or does not answer in time. The
   *   statement may have taken effect all the same.
   * @throws {ValuesRefused} where it refuses the parameters.
   */
  async query<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    try {
      const rows = await this.#run<Row>(statement, deadline);
      this.#failedAt = -Infinity;
      return rows;
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#failedAt = performance.now();
      throw error;
    }
  }

  async #run<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      if (!this.#usable) throw new StoreUnavailable('The store is not there yet, or no longer');
      const isPrepared = this.#prepares && statement.name !== undefined;
      try {
        const { text, values } = statement;
        return await this.#attempt<Row>(isPrepared ? statement : { text, values }, deadline);
      } catch (error) {
        if (isPrepared && blamesPreparation(error)) {
          if (this.#prepares)
            this.logger.info({ err: error }, 'Sessions do not keep prepared statements; doing without');
          this.#prepares = false;
          continue;
        }
        if (isValueError(error)) throw new ValuesRefused(error);
        const isLate = error instanceof StoreUnavailable || performance.now() >= deadline;
        if (isLate || attempt === MAX_ATTEMPTS || !isRetryable(error)) {
          this.logger.error({ err: error, attempt }, 'A statement failed');
          if (error instanceof StoreUnavailable) throw error;
          throw new StoreUnavailable('The store cannot be reached', { cause: error });
        }
        await delay(Math.random() * 10 * attempt);
      }
    }
  }

  async #attempt<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    const runner = this.dataSource.createQueryRunner();
    let client: PoolClient | undefined;
    let timer: NodeJS.Timeout | undefined;
    const outcome: { isLate: boolean; abandoned?: Promise<void> } = { isLate: false };
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        outcome.isLate = true;
        reject(new StoreUnavailable('The store did not answer in time'));
        if (client !== undefined) outcome.abandoned = abandonStatement(client);
      }, deadline - performance.now());
    });
    const work = (async () => {
      try {
        client = (await runner.connect()) as PoolClient;
        // The caller was answered while this waited for a connection.
        // TypeORM's own query() cannot name a statement.
        return outcome.isLate ? [] : (await client.query<Row & QueryResultRow>(statement)).rows;
      } finally {
        // A statement that ends while it is given up leaves a connection that nothing else may use.
        await outcome.abandoned;
        await runner.release();
      }
    })();
    try {
      return await Promise.race([work, limit]);
    } finally {
      clearTimeout(timer);
      work.catch(() => undefined);
    }
  }

  async #start(): Promise<boolean> {
    const { url, dataDir, migrations } = this.config.database;
    if (url === undefined) {
      this.#embedded = await openEmbeddedPostgres(dataDir, this.logger);
      useEmbedded(this.dataSource, this.#embedded);
    }
    for (let attempt = 1; !this.#stopping; attempt++) {
      try {
        if (!this.dataSource.isInitialized) await this.dataSource.initialize();
        const executed = migrations === 'auto' ? await migrate(this.dataSource) : [];
        if (executed.length > 0) this.logger.info({ migrations: executed }, 'Migrated the database');
        this.#usable = true;
        return true;
      } catch (error) {
        if (!maySucceedLater(error)) throw error;
        if (attempt % ATTEMPTS_PER_LOG_LINE === 1)
          this.logger.warn({ err: error, attempt }, 'The database cannot be reached yet; waiting for it');
        await delay(START_RETRY_MS);
      }
    }
    return false;
  }
}
