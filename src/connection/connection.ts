import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Failure } from '../errors/failure.js';
import { Framing } from './framing.js';
import type { Refuse } from './refuse.js';

/**
 * @param unused for a connection on which no request has begun.
 * @returns the time limits of a connection, in milliseconds.
 */
export function connectionLimits(unused: number) {
  return {
    /** For the head of a request to arrive, from its first byte. */
    head: 10_000,
    /** For a whole request to arrive, from its first byte. */
    request: 30_000,
    /** For a client to read nothing of its response. */
    stalledResponse: 30_000,
    /** For a client to go on sending after its last response, in total and without a byte (nginx's lingering close). */
    linger: 10_000,
    lingerSilent: 1_000,
    unused,
  };
}

export type ConnectionLimits = ReturnType<typeof connectionLimits>;

/** A rest of a body of at most this many bytes is read after the response, to keep the connection. */
const SMALL_REST = 16 * 1024;

const TOO_SLOW = new Failure(408, 'The request took too long to arrive');
const INCOMPLETE = new Failure(400, 'The request ended before it was complete');
const MALFORMED = new Failure(400, 'The request is not well-formed HTTP/1.1');

const connections = new WeakMap<Socket, Connection>();

/** @returns the connection of a socket, if `Connections` guards its server. */
export function connectionOf(socket: Socket): Connection | undefined {
  return connections.get(socket);
}

/**
 * Stands between a socket and Node's HTTP parser and passes on one request at a time, the next when that is answered
 * (RFC 9112 section 9.3.2). So pipelined requests wait in the kernel, and two creates of one id keep their order.
 */
export class Connection {
  readonly #framing: Framing;
  readonly #parse: (bytes: Buffer) => void;
  readonly #finish: () => void;
  /** What arrived after the request that is being answered. */
  #held: Buffer | undefined;
  #response: ServerResponse | undefined;
  #isUsed = false;
  /** When the last request began to arrive, or the connection was opened. */
  #since = performance.now();
  /** When the connection stopped reading requests. */
  #endingSince: number | undefined;
  #isEnded = false;
  #lastByteAt = 0;
  /** How many bytes the kernel has taken, and when it last took some. */
  #taken = 0;
  #takenAt = 0;

  /** @param socket a new connection, right after Node's own listener has seen it. */
  constructor(
    readonly socket: Socket,
    private readonly limits: ConnectionLimits,
    bodyLimit: number,
    private readonly refuse: Refuse,
  ) {
    this.#framing = new Framing(bodyLimit);
    connections.set(socket, this);
    const [parse] = socket.listeners('data') as [(bytes: Buffer) => void];
    this.#parse = parse;
    socket.removeListener('data', parse);
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    // The other 'end' listener is the socket's own. Node's would close the connection after the current response.
    const finish = socket.listeners('end').at(-1) as () => void;
    socket.removeListener('end', finish);
    this.#finish = finish.bind(socket);
    socket.on('end', () => this.#finishUnlessHolding());
    // Node calls this when the last response is written, and would close both directions. What the client still sends
    // would then be answered with a reset, and its kernel would drop the response (RFC 9112 section 9.6).
    socket.destroySoon = () => this.end();
  }

  /** Whether a request has arrived completely and is being answered. */
  get isAnswering(): boolean {
    return this.#response !== undefined && this.#framing.isBetweenRequests;
  }

  /** Whether so much of the request is missing that its response ends the connection, and the rest is not read. */
  get mustEnd(): boolean {
    return this.#framing.remaining > SMALL_REST;
  }

  /** The head of a request has arrived. The next request is read when this body and its response are complete. */
  begin(response: ServerResponse): void {
    this.#response = response;
    response.on('close', this.#onAnswered);
  }

  /** Announces that the current response, if any, is the last one. */
  announceEnd(): void {
    if (this.#response?.headersSent === false) this.#response.setHeader('Connection', 'close');
  }

  /** Refuses what is arriving, in the response to its request if it has one, and ends the connection. */
  fail(failure: Failure): void {
    if (this.#endingSince !== undefined) return;
    const response = this.#response;
    const isAnswered = response === undefined ? this.#framing.remaining > 0 : response.headersSent;
    if (!this.socket.writable) this.socket.destroy();
    else if (isAnswered) this.end();
    else this.refuse(failure, this, response);
  }

  /** @param error of the socket or of Node's parser. Framing leaves the parser no fault to find but an early end. */
  failBy({ code = '' }: NodeJS.ErrnoException): void {
    if (!code.startsWith('HPE_')) this.socket.destroy();
    else this.fail(code === 'HPE_INVALID_EOF_STATE' ? INCOMPLETE : MALFORMED);
  }

  /** From now on nothing is read as a request: the framing is in doubt, or the rest of a body is left unread. */
  ignoreRest(): void {
    this.#endingSince ??= this.#lastByteAt = performance.now();
    this.#held = undefined;
  }

  /** Ends this side after a last text. What the client still sends is read and dropped, so that it gets the response. */
  end(last = ''): void {
    this.ignoreRest();
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.socket.end(last);
    this.socket.resume();
  }

  /** Ends what takes too long. Call it regularly. */
  check(now: number): void {
    const { limits, socket } = this;
    this.#watchResponse(now);
    const elapsed = now - this.#since;
    if (this.#endingSince !== undefined) {
      const isSilent = socket.writableLength === 0 && now - this.#lastByteAt >= limits.lingerSilent;
      if (isSilent || now - this.#endingSince >= limits.linger) socket.destroy();
    } else if (!this.#framing.isBetweenRequests) {
      if (elapsed >= (this.#framing.isInHead ? limits.head : limits.request)) this.fail(TOO_SLOW);
    } else if (!this.#isUsed && elapsed >= limits.unused) socket.destroy();
  }

  #watchResponse(now: number): void {
    const waiting = waitingBytes(this.socket);
    const taken = this.socket.bytesWritten - waiting;
    if (waiting === 0 || taken !== this.#taken) {
      this.#taken = taken;
      this.#takenAt = now;
    } else if (now - this.#takenAt >= this.limits.stalledResponse) {
      // Without a reset, the kernel would keep the client's data for minutes. resetAndDestroy() alone would wait until
      // everything is written.
      this.socket.resetAndDestroy().destroy();
    }
  }

  #take(bytes: Buffer): void {
    if (this.#endingSince !== undefined) this.#lastByteAt = performance.now();
    else if (this.#held !== undefined) this.#hold(Buffer.concat([this.#held, bytes]));
    else this.#read(bytes);
  }

  #read(bytes: Buffer): void {
    for (let unread: Buffer | undefined = bytes; unread !== undefined; unread = this.#framing.rest) {
      if (this.#endingSince !== undefined || this.socket.destroyed) return;
      if (this.#framing.isBetweenRequests) {
        if (this.#response !== undefined) {
          this.#hold(unread);
          return;
        }
        this.#since = performance.now();
      }
      try {
        const safe = this.#framing.read(unread);
        this.#isUsed ||= !this.#framing.isBetweenRequests || safe !== undefined;
        if (safe !== undefined) this.#parse(safe);
        // Node's parser sees no byte of this head yet, and would still count the connection as idle.
        else if (this.#framing.isInHead) this.socket.setTimeout(0);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        this.fail(error);
        return;
      }
    }
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes;
    this.socket.pause();
  }

  readonly #onAnswered = (): void => {
    this.#response = undefined;
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#read(held);
    if ((this.#held as Buffer | undefined) !== undefined) return;
    if (this.socket.readableEnded) this.#finishUnlessHolding();
    else this.socket.resume();
  };

  /** Tells Node that no more comes, once it has all that came. */
  #finishUnlessHolding(): void {
    if (this.#held !== undefined || this.socket.destroyed) return;
    if (this.#framing.isInHead) this.fail(INCOMPLETE);
    this.#finish();
  }
}

/** The bytes that were written and the kernel has not taken. The handle counts bytes, `writableLength` whole writes. */
function waitingBytes(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? socket.writableLength;
}
