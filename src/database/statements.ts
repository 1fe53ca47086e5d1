import { setTimeout as delay } from 'node:timers/promises';
import type { PoolClient, QueryResultRow } from 'pg';
import type { Logger } from 'pino';
import type { DataSource } from 'typeorm';
import { abandonStatement } from './cancel.js';
import { poolOf } from './data-source.js';
import {
  blamesPreparation,
  blamesSession,
  isRetryable,
  isValueError,
  StoreUnavailable,
  ValuesRefused,
} from './errors.js';
import type { Session } from './session.js';

/** How often a statement is sent at most, if the database's error says that it may be sent again. */
const MAX_ATTEMPTS = 4;
/** The longest pause before the second attempt. It is twice as long before the third, and so on. */
const PAUSE_MS = 10;
/** The same if the session is to blame. A DNS entry or a proxy needs a moment to lead to the right server. */
const NEW_SESSION_PAUSE_MS = 50;

/**
 * Makes a SELECT write to the write-ahead log for each row; it needs no more rights than SELECT. So the statement's own
 * commit waits for the disk and for synchronous standbys, as a create's does.
 */
export const LOG_MESSAGE = "pg_logical_emit_message(true, '', '')";

/** A statement with its parameters. If it has a name, it is sent as a prepared statement. */
export interface Statement {
  name?: string;
  text: string;
  values: unknown[];
}

type PooledSession = Session & PoolClient;

/** Runs statements, each within its time limit. */
export class Statements {
  /** Whether statements that have a name are prepared. */
  #prepares = true;
  /** Sessions that were made before this are not used, in milliseconds of performance.now(). */
  #trustedSince = 0;
  #hasToldOfLoss = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly logger: Logger,
  ) {
    dataSource.setOptions({ poolErrorHandler: (error: Error) => this.#tellOfLoss(error) });
  }

  /**
   * @param statement a prepared one is parsed and planned once for each session. If sessions do not keep it, as behind a
   *   pooler in transaction mode, none is prepared from then on.
   * @param deadline when the statement is given up, in milliseconds of performance.now().
   * @returns the rows.
   * @throws {StoreUnavailable} if the database cannot be reached, fails, or does not answer in time. The statement may
   *   still have taken effect.
   * @throws {ValuesRefused} if the database refuses the parameters.
   */
  async run<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      const isPrepared = this.#prepares && statement.name !== undefined;
      try {
        const { text, values } = statement;
        const rows = await this.#attempt<Row>(isPrepared ? statement : { text, values }, deadline);
        this.#hasToldOfLoss = false;
        return rows;
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        if (isPrepared && blamesPreparation(error)) {
          if (this.#prepares)
            this.logger.info({ err: error }, 'Sessions do not keep prepared statements; doing without');
          this.#prepares = false;
          continue;
        }
        if (isValueError(error)) throw new ValuesRefused(error);
        if (performance.now() >= deadline || attempt === MAX_ATTEMPTS || !isRetryable(error))
          throw new StoreUnavailable('The store cannot be reached', { cause: error });
        const isSessionsFault = blamesSession(error);
        // The other sessions of the pool probably have the same fault.
        if (isSessionsFault) this.#trustedSince = performance.now();
        await delay(Math.random() * attempt * (isSessionsFault ? NEW_SESSION_PAUSE_MS : PAUSE_MS));
      }
    }
  }

  #attempt<Row>(statement: Statement, deadline: number): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      let session: PooledSession | undefined;
      let abandoned: Promise<void> | undefined;
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(new StoreUnavailable('The store did not answer in time'));
        if (session !== undefined) abandoned = abandonStatement(session);
      }, deadline - performance.now());

      const work = async (): Promise<Row[]> => {
        const acquired = await this.#acquire();
        let isUsable = true;
        try {
          // The caller was answered while this waited for a session.
          if (isLate) return [];
          session = acquired;
          const { rows } = await session.query<Row & QueryResultRow>(statement);
          if (session.fault !== undefined) throw session.fault;
          return rows;
        } catch (error) {
          isUsable = !blamesSession(error);
          throw error;
        } finally {
          // An abandoned session is closed before the pool gets it back, even if its statement ended meanwhile.
          await abandoned;
          acquired.release(!isUsable);
        }
      };
      work()
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  /** @returns a session of the pool that is trusted and has not expired. */
  async #acquire(): Promise<PooledSession> {
    for (;;) {
      const pool = poolOf(this.dataSource);
      if (pool === undefined) throw new StoreUnavailable('The service is not connected to its store');
      const session = (await pool.connect()) as PooledSession;
      const isTrusted = session.createdAt >= this.#trustedSince && performance.now() < session.expiresAt;
      if (isTrusted) return session;
      session.release(true);
    }
  }

  /** Logs only the first idle connection that an outage cuts. */
  #tellOfLoss(error: Error): void {
    if (!this.#hasToldOfLoss) this.logger.warn({ err: error }, 'An idle database connection was lost');
    this.#hasToldOfLoss = true;
  }
}
