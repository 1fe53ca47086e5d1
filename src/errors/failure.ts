interface FailureOptions {
  /** Headers of the response, such as `WWW-Authenticate`. */
  headers?: Readonly<Record<string, string>>;
  /** The internal cause: for the log, never for the client. */
  cause?: unknown;
  /** The level at which this failure is logged with its cause. Leave it out if nobody needs to investigate. */
  log?: 'warn' | 'error';
}

/** A request that is refused. All code throws this or passes it on; only this folder converts it to a response. */
export class Failure extends Error {
  override name = 'Failure';
  readonly headers: Readonly<Record<string, string>>;
  readonly log: 'warn' | 'error' | undefined;

  /**
   * @param error the contract's error number (int32): HTTP's status for this failure (docs/CONTRACT.md).
   * @param message one English sentence for the client, without its full stop. It names the field and the rule and
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

/** The connection closed before the request was complete, so nobody can be answered. */
export class RequestAborted extends Failure {
  constructor() {
    super(400, 'The client went away before its request was complete');
  }
}
