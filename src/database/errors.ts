import { QueryFailedError } from 'typeorm';
import { Failure } from '../errors/failure.js';

/**
 * The store cannot be reached, is overloaded or did not answer in time. It is unknown whether anything is stored; a
 * retry is safe. It is logged where it is noticed, once for all requests that fail with it.
 */
export class StoreUnavailable extends Failure {
  /** @param message the first half of a sentence. */
  constructor(message: string, options?: { cause: unknown }) {
    super(503, `${message}; the same request may be sent again`, options);
  }
}

/** The database refused the values of a statement. It is logged, so that somebody can find out why. */
export class ValuesRefused extends Failure {
  /** @param cause the driver's error. */
  constructor(cause: unknown) {
    super(422, 'The store cannot hold these values', { cause, log: 'warn' });
  }
}

/** The database cannot be used until somebody changes it or the configuration. Waiting does not help. */
export class DatabaseFault extends Error {
  override name = 'DatabaseFault' as const;
}

/**
 * SQLSTATEs (PostgreSQL, appendix A) that blame the values: data exception, constraint violation, program limit
 * exceeded, and a trigger's RAISE.
 */
const VALUE_ERROR = /^((22|23|54)...|P0001)$/;

/**
 * SQLSTATEs that blame the session: it takes no writes or is stuck in a transaction (25), a system or internal error
 * such as a standby's "cannot assign TransactionIds during recovery" (58, XX), or the connection has ended (08, admin
 * shutdown, crash shutdown, idle session timeout).
 */
const BLAMES_SESSION = /^(25...|58...|XX...|08...|57P01|57P02|57P05)$/;

/** Those of them with which a connection has ended. */
const ENDS_CONNECTION = /^(08...|57P01|57P02|57P05)$/;

/** SQLSTATEs after which the statement may succeed in the same session: serialization failure and deadlock. */
const RETRYABLE = /^(40001|40P01)$/;

/**
 * SQLSTATEs with which a start waits: connection failures, too many connections, starting up or shutting down, a
 * standby that is not promoted yet, and what ends a wait for another replica's migration (the server's own time limits,
 * a deadlock, a serialization failure).
 */
const MAY_SUCCEED_LATER = /^(08...|53...|57P0.|25006|57014|55P03|40P01|40001)$/;

/**
 * SQLSTATEs of a session that does not have the prepared statement, has another one of that name, or prepared it before
 * the table was changed.
 */
const BLAMES_PREPARATION = /^(26000|42P05|0A000)$/;

function driverErrorOf(error: unknown): { code?: unknown; severity?: unknown } {
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return cause ?? {};
}

/** @returns the SQLSTATE of a database error, the code of a socket error, or undefined. */
function codeOf(error: unknown): string | undefined {
  const { code } = driverErrorOf(error);
  return typeof code === 'string' ? code : undefined;
}

const isSqlState = (code: string | undefined) =>
  code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code);

export function isValueError(error: unknown): boolean {
  return VALUE_ERROR.test(codeOf(error) ?? '');
}

/** Whether the statement had no effect and may succeed if it is not prepared. */
export function blamesPreparation(error: unknown): boolean {
  return BLAMES_PREPARATION.test(codeOf(error) ?? '');
}

/** Whether the session must not be used again. */
export function blamesSession(error: unknown): boolean {
  const code = codeOf(error);
  return !isSqlState(code) || (BLAMES_SESSION.test(code as string) && !isEndBehind(error));
}

/**
 * Whether the server's own connection to another node of a cluster has ended. The end of this session would be FATAL.
 */
function isEndBehind(error: unknown): boolean {
  return ENDS_CONNECTION.test(codeOf(error) ?? '') && driverErrorOf(error).severity === 'ERROR';
}

/** Whether the statement may succeed at once, in a new session if this one is to blame. */
export function isRetryable(error: unknown): boolean {
  const code = codeOf(error);
  if (isSqlState(code)) return RETRYABLE.test(code as string) || BLAMES_SESSION.test(code as string);
  // A lost connection often has no code. One that is refused will be refused again at once.
  return code === undefined || code === 'ECONNRESET' || code === 'EPIPE';
}

/** Node's names of OpenSSL's codes for a refused certificate, and the alerts with which a server refuses ours. */
const CERTIFICATE_REFUSED =
  /^(CERT_|CRL_|UNABLE_TO_|ERROR_IN_C|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH|ERR_TLS_CERT_|ERR_SSL_.*_ALERT_.*(CERT|_CA$))/;

/** `pg`'s messages, which have no code, if a password is missing or the server does not support TLS. */
const MISCONFIGURED = /^SASL: .*client password must be|does not support SSL/;

export function isCertificateRefused(error: unknown): boolean {
  return CERTIFICATE_REFUSED.test(codeOf(error) ?? '');
}

/** Whether the database may be usable later. If not, it or the configuration must be changed. */
export function maySucceedLater(error: unknown): boolean {
  if (error instanceof DatabaseFault) return false;
  const code = codeOf(error);
  if (isSqlState(code)) return MAY_SUCCEED_LATER.test(code as string);
  if (isCertificateRefused(error)) return false;
  return !MISCONFIGURED.test((error as Error).message);
}
