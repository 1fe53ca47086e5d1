import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { LOGGER } from '../logging/logging.js';
import { checkEncoding, placeOf } from './catalogue.js';
import { maySucceedLater, StoreUnavailable } from './errors.js';
import { migrate } from './migrate.js';
import { Statements, type Statement } from './statements.js';

const START_RETRY_MS = 500;
/** Of failed starts every so manieth is logged: the first, and then two a minute if each fails at once. */
const ATTEMPTS_PER_LOG_LINE = 60;
const READY_TIMEOUT_MS = 1_000;
/** How long a failed statement counts against the readiness at least, if none succeeds after it. */
const FAILURE_COUNTS_MS = 5_000;

/**
 * Writes nothing but an empty message to the server's log. Its commit waits, as a create's does, for the disk and for
 * synchronous standbys.
 */
const COMMIT = "SELECT pg_logical_emit_message(true, '', '')";

/** The connection to the database: its start, its readiness and its end. */
@Injectable()
export class Database implements OnApplicationBootstrap, OnApplicationShutdown {
  /**
   * True when the database can be used for the first time, false if the service was stopped before that.
   * Rejects if it cannot be used without a change of the configuration.
   */
  readonly started: Promise<boolean>;
  #resolveStarted!: (outcome: Promise<boolean>) => void;
  readonly #statements: Statements;
  #usable = false;
  #stopping = false;
  /** When the latest statement failed, in milliseconds of performance.now(), unless one succeeded after it. */
  #failedAt: number | undefined;
  /** What a create needs, as statements that change nothing. */
  readonly #needs: Statement[] = [];
  #look: Promise<boolean> | undefined;
  #wasReady = true;

  constructor(
    private readonly dataSource: DataSource,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.#statements = new Statements(dataSource, logger);
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
  }

  /**
   * Adds to what the service needs to be ready.
   *
   * @param text a statement that succeeds if those of an operation would, and changes nothing.
   */
  need(text: string): void {
    this.#needs.push({ text, values: [] });
  }

  /**
   * Whether the statements of the operations would succeed now. The table of plants may be missing or locked, a column
   * or a right may be missing, or the server may take no writes. Some faults, such as a full disk, only the creates
   * themselves find. So after a failed statement it takes a time and a commit until the service is ready again.
   */
  async isReady(): Promise<boolean> {
    if (!this.#usable) return false;
    if (this.#failedAt !== undefined && performance.now() - this.#failedAt < FAILURE_COUNTS_MS) return false;
    // However many ask at once, they get one connection of the pool between them.
    this.#look ??= this.#tryNeeds().finally(() => (this.#look = undefined));
    return this.#look;
  }

  async #tryNeeds(): Promise<boolean> {
    const failedAt = this.#failedAt;
    const commit = failedAt === undefined ? [] : [{ text: COMMIT, values: [] }];
    const deadline = performance.now() + READY_TIMEOUT_MS;
    try {
      for (const statement of [...this.#needs, ...commit]) await this.#statements.run(statement, deadline);
      if (this.#failedAt === failedAt) this.#failedAt = undefined;
      if (!this.#wasReady) this.logger.info('Ready again');
      this.#wasReady = true;
    } catch (error) {
      if (this.#wasReady) this.logger.warn({ err: causeOf(error) }, 'Not ready: creates would fail');
      this.#wasReady = false;
    }
    return this.#wasReady;
  }

  /** See {@link Statements.run}. A failure is logged here, and counts against the readiness. */
  async query<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    try {
      if (!this.#usable) throw new StoreUnavailable('The store is not there yet, or no longer');
      const rows = await this.#statements.run<Row>(statement, deadline);
      this.#failedAt = undefined;
      return rows;
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        this.#failedAt = performance.now();
        this.logger.error({ err: causeOf(error) }, 'A statement failed');
      }
      throw error;
    }
  }

  async #start(): Promise<boolean> {
    for (let attempt = 1; !this.#stopping; attempt++) {
      try {
        if (!this.dataSource.isInitialized) await this.dataSource.initialize();
        await checkEncoding(this.dataSource);
        const executed = this.config.database.migrations === 'auto' ? await migrate(this.dataSource) : [];
        if (executed.length > 0) this.logger.info({ migrations: executed }, 'Migrated the database');
        this.logger.info(await placeOf(this.dataSource, this.dataSource), 'The database can be used');
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

function causeOf(error: unknown): unknown {
  return error instanceof StoreUnavailable ? (error.cause ?? error) : error;
}
