export interface FailureOptions {
  /** Sent with the answer, such as `WWW-Authenticate`. */
  headers?: Readonly<Record<string, string>>;
  /** What went wrong inside: for the log, never for the client. */
  cause?: unknown;
  /** The level at which this request's failure is logged, with its cause. Without one nobody needs to look into it. */
  log?: 'warn' | 'error';
}

/** A request that is refused. Whatever refuses one throws this or hands it over; only this folder turns it into bytes. */
export class Failure extends Error {
  override name = 'Failure';
  readonly headers: Readonly<Record<string, string>>;
  readonly log: 'warn' | 'error' | undefined;

  /**
   * @param error the int32 that tells the kinds of failure apart: the number that HTTP has for it (docs/CONTRACT.md).
   * @param message one English sentence for the client, without its full stop. It names the field and the rule, and
   *   repeats nothing that the client sent.
   */
  constructor(
    readonly error: number,
    message: string,
    { headers = {}, cause, log }: FailureOptions = {},
  ) {
    super(message, { cause });
    this.headers = headers;
    this.log = log;
  }
}

/** The connection ended before the request did: there is nobody to answer. */
export class RequestAborted extends Failure {
  constructor() {
    super(400, 'The client went away before its request was complete');
  }
}
