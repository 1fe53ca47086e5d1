import type { IncomingMessage } from 'node:http';
import { MIMEType, promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Failure, RequestAborted } from '../errors/failure.js';

/** RFC 9110 section 8.4.1.3: `x-gzip` is equivalent to `gzip`. */
const GZIP = new Set(['gzip', 'x-gzip']);
const NO_CODING = new Set(['', 'identity']);
/** The time of Node's media type parser grows with the square of the length. */
const MAX_CONTENT_TYPE_LENGTH = 256;
/** A body of up to this many bytes does not count against the budget: the number of connections bounds these. */
const SMALL_BODY = 16 * 1024;
/** Decodings use threads that signature checks need too. */
const MAX_DECODINGS = 2;

/** Drops a byte order mark. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the bodies of all requests and keeps their memory within a budget. */
export class BodyReader {
  #decodings = 0;
  readonly #waitingToDecode: (() => void)[] = [];

  /**
   * @param limit the largest body in bytes, as sent and after decoding.
   * @param budget the memory of all arriving bodies together, in bytes. No less than the limit.
   */
  constructor(
    private readonly limit: number,
    private budget: number,
  ) {}

  /**
   * Reads the text of a JSON request. Checks the media type, content coding, size and UTF-8 in this order, and does
   * not read a body that the headers already rule out.
   *
   * @param onRead called before the first byte is read.
   * @returns the text, without a byte order mark, which a reader may ignore (RFC 8259 section 8.1).
   * @throws {Failure} 415 for an unsupported media type, charset or content coding, 413 beyond the limit, 503 beyond
   *   the budget, 400 for bytes that the coding or UTF-8 does not allow.
   * @throws {RequestAborted} if the client disconnected.
   */
  async readText(request: IncomingMessage, onRead: () => void): Promise<string> {
    checkMediaType(request.headers['content-type']);
    const coding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
    const isCoded = GZIP.has(coding);
    if (!isCoded && !NO_CODING.has(coding)) throw unsupported('Content-Encoding must be gzip or none');
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > this.limit) throw this.#tooLarge();
    const body = await this.#read(request, announced, isCoded, onRead);
    try {
      return UTF_8.decode(body);
    } catch {
      throw new Failure(400, 'The body is not UTF-8 text');
    }
  }

  /**
   * Keeps the memory reserved until the body is decoded, since any number of bodies may wait for that.
   *
   * @param announced the Content-Length, or 0 if the body is chunked.
   */
  async #read(
    request: IncomingMessage,
    announced: number,
    isCoded: boolean,
    onRead: () => void,
  ): Promise<Buffer> {
    // Most bodies arrive together with their header and need no listeners. resume() lets the request end.
    if (!isCoded && announced > 0 && request.readableLength === announced) {
      onRead();
      const body = request.read() as Buffer;
      request.resume();
      return body;
    }
    const room = new Room(announced, (bytes) => this.#reserve(bytes));
    try {
      onRead();
      const body = await this.#collect(request, room);
      return isCoded ? await this.#decodeInTurn(body) : body;
    } finally {
      this.budget += room.reserved;
    }
  }

  #reserve(bytes: number): void {
    if (bytes > this.budget) {
      throw new Failure(
        503,
        'The service has no room for more request bodies; the same request may be sent again',
      );
    }
    this.budget -= bytes;
  }

  /** Copies the pieces into one buffer as they arrive: small ones would take many times their own size. */
  #collect(request: IncomingMessage, room: Room): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const settle = (error?: Failure) => {
        request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
        if (error === undefined) resolve(room.content);
        else reject(error);
      };
      const onData = (piece: Buffer) => {
        try {
          if (room.length + piece.length > this.limit) throw this.#tooLarge();
          room.add(piece, this.limit);
        } catch (error) {
          settle(error as Failure);
        }
      };
      const onEnd = () => settle();
      const onClose = () => settle(new RequestAborted());
      // The client may be gone since before its token was checked. Then no event follows.
      if (request.destroyed) {
        onClose();
        return;
      }
      request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
    });
  }

  async #decodeInTurn(coded: Buffer): Promise<Buffer> {
    if (this.#decodings === MAX_DECODINGS) {
      await new Promise<void>((resolve) => this.#waitingToDecode.push(resolve));
    } else this.#decodings++;
    try {
      return await this.#decode(coded);
    } finally {
      const next = this.#waitingToDecode.shift();
      if (next === undefined) this.#decodings--;
      else next();
    }
  }

  async #decode(coded: Buffer): Promise<Buffer> {
    try {
      const options = { maxOutputLength: this.limit, info: true };
      const { buffer, engine } = (await promisify(gunzip)(coded, options)) as unknown as {
        buffer: Buffer;
        engine: { bytesWritten: number };
      };
      if (engine.bytesWritten === coded.length) return buffer;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw this.#tooLarge();
    }
    throw new Failure(400, 'The body is not what its Content-Encoding says');
  }

  #tooLarge(): Failure {
    return new Failure(413, `The body must be at most ${this.limit} bytes`);
  }
}

/** The memory for a body that is arriving. */
class Room {
  length = 0;
  /** Its share of the budget, in bytes. */
  reserved = 0;
  #bytes: Buffer;

  /** @param announced the length of the body, or 0 if it is unknown. */
  constructor(
    announced: number,
    private readonly reserve: (bytes: number) => void,
  ) {
    this.#claim(announced);
    this.#bytes = Buffer.allocUnsafe(announced || SMALL_BODY);
  }

  get content(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  /** @param limit the largest length that the body may have. */
  add(piece: Buffer, limit: number): void {
    const length = this.length + piece.length;
    if (length > this.#bytes.length) {
      const capacity = Math.min(Math.max(2 * this.#bytes.length, length), limit);
      this.#claim(capacity);
      const larger = Buffer.allocUnsafe(capacity);
      this.content.copy(larger);
      this.#bytes = larger;
    }
    piece.copy(this.#bytes, this.length);
    this.length = length;
  }

  #claim(capacity: number): void {
    if (capacity <= SMALL_BODY) return;
    this.reserve(capacity - this.reserved);
    this.reserved = capacity;
  }
}

function checkMediaType(contentType = ''): void {
  if (contentType === 'application/json') return;
  const mediaType = contentType.length > MAX_CONTENT_TYPE_LENGTH ? undefined : parseMediaType(contentType);
  if (mediaType?.essence !== 'application/json') throw unsupported('Content-Type must be application/json');
  const charset = mediaType.params.get('charset');
  if (charset !== null && charset.toLowerCase() !== 'utf-8') {
    throw unsupported('The charset of Content-Type must be utf-8');
  }
}

function parseMediaType(contentType: string): MIMEType | undefined {
  try {
    return new MIMEType(contentType);
  } catch {
    return undefined;
  }
}

/** RFC 9110 section 15.5.16: a 415 names what would have been accepted. */
function unsupported(message: string): Failure {
  return new Failure(415, message, {
    headers: { Accept: 'application/json', 'Accept-Encoding': 'gzip' },
  });
}
