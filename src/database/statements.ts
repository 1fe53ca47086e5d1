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

/** How often a statement is sent at most if the database says that it may be sent again. */
const MAX_ATTEMPTS = 4;
/** The longest pause before the second attempt; before the third it is twice as long, and so on. */
const PAUSE_MS = 10;
/** The same if the session was to blame: whatever leads to the right server needs a moment. */
const NEW_SESSION_PAUSE_MS = 50;

/**
 * In a SELECT: writes an empty message to the server's log for each row, for which SELECT on the table suffices. So the
 * statement has a commit of its own, which waits for the disk and for synchronous standbys, as a create's does.
 */
export const LOG_MESSAGE = "pg_logical_emit_message(true, '', '')";

/** A statement with its parameters. With a name it goes out as a prepared statement. */
export interface Statement {
  name?: string;
  text: string;
  values: unknown[];
}

type PooledSession = Session & PoolClient;

/** Runs statements, each within its time limit and on a session that can be trusted. */
export class Statements {
  /** Whether statements that have a name go out as prepared statements. */
  #prepares = true;
  /** Sessions that were made before are not used, in milliseconds of performance.now(). */
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
   *   pooler that hands them on from transaction to transaction, none is prepared from then on.
   * @param deadline when the statement is given up, in milliseconds of performance.now().
   * @returns the rows.
   * @throws {StoreUnavailable} if the database cannot be reached, fails, or does not answer in time. The statement may
   *   have taken effect all the same.
   * @throws {ValuesRefused} if it refuses the parameters.
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
        // Those that wait in the pool were made in the same circumstances.
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
          // Whoever asked was answered while this waited for a session.
          if (isLate) return [];
          session = acquired;
          const { rows } = await session.query<Row & QueryResultRow>(statement);
          if (session.fault !== undefined) throw session.fault;
          return rows;
        } catch (error) {
          isUsable = !blamesSession(error);
          throw error;
        } finally {
          // A statement that ends while it is given up leaves a connection that nothing else may use.
          await abandoned;
          acquired.release(!isUsable);
        }
      };
      work()
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  /** @returns a session of the pool that is neither too old nor distrusted. */
  async #acquire(): Promise<PooledSession> {
    for (;;) {
      const pool = poolOf(this.dataSource);
      if (pool === undefined) throw new StoreUnavailable('The store is not there yet, or no longer');
      const session = (await pool.connect()) as PooledSession;
      const isTrusted = session.createdAt >= this.#trustedSince && performance.now() < session.expiresAt;
      if (isTrusted) return session;
      session.release(true);
    }
  }

  /** Logs the first connection of an outage that is lost while nothing uses it. */
  #tellOfLoss(error: Error): void {
    if (!this.#hasToldOfLoss) this.logger.warn({ err: error }, 'An idle database connection was lost');
    this.#hasToldOfLoss = true;
  }
}
