import { METHODS } from 'node:http';
import { Failure } from '../errors/failure.js';

/** The largest request line and headers together, in bytes. It is Node's own limit. */
export const MAX_HEAD = 16 * 1024;
/** A longer head is not kept but checked each time, so that a connection takes little memory. */
const MAX_KNOWN_HEAD = 4 * 1024;
/** The longest line among the chunks of a body: a size with its extensions, or a trailer. */
const MAX_CHUNK_LINE = 16 * 1024;
/** What the framing of chunks may always take, even if the body limit is smaller. */
const MIN_CHUNK_FRAMING = 64 * 1024;

const KNOWN_METHODS = new Set(METHODS);
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** RFC 9110 section 5.5: the only control character in a field value is the tab. */
const FIELD_LINE = `${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n`;
const FIELD_LINES = new RegExp(`^(?:${FIELD_LINE})*$`);
/** RFC 9112 section 3.2, without CONNECT's form. A target has no fragment. */
const TARGET = /^(?:\/[\x21\x22\x24-\x7e]*|\*|https?:\/\/[\x21\x22\x24-\x7e]+)$/i;
/** The fields that tell where a request ends or that another protocol follows it. */
const FRAMING_FIELD = /^(content-length|transfer-encoding|upgrade):/gim;
/** RFC 9110 section 6.5.1 forbids these among trailers. */
const FRAMING_TRAILER = /^(?:content-length|transfer-encoding):/i;
const LENGTH_VALUE = /[\t ]*0*(\d{1,19})[\t ]*\r\n/y;
const CHUNKED_VALUE = /[\t ]*chunked[\t ]*\r\n/iy;
/** RFC 9112 section 7.1.1, without the "bad whitespace" (BWS). */
const CHUNK_EXTENSION = `;${TOKEN}(?:=(?:${TOKEN}|"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"))?`;
const CHUNK_SIZE = new RegExp(`^0*([\\da-f]{1,13})(?:${CHUNK_EXTENSION})*\\r\\n$`, 'i');
/** Room before a chunk for its size in eight digits and a line end. */
const SIZE_LINE = 10;
const LINE_FEED = 10;
/** Stands for a length that is not known. */
const CHUNKED = -1;
const LINE_END = '\r\n';
const LAST_CHUNK = '0\r\n\r\n';

const MALFORMED_LINE = new Failure(
  400,
  'The request must start with a line of a method, a target and HTTP/1.1 or HTTP/1.0, with one space between them',
);
const UNKNOWN_METHOD = new Failure(400, 'The request does not start with an HTTP method');
export const BAD_TARGET = new Failure(400, 'The request target must be a path, with or without a query');
const BAD_VERSION = new Failure(400, 'The HTTP version must be 1.1 or 1.0');
/** RFC 9110 section 15.5.6 demands Allow. CONNECT's target is not a path, so Allow has the methods of /plants. */
const TUNNEL = new Failure(405, 'CONNECT is not served here', { headers: { Allow: 'POST, OPTIONS' } });
const BAD_LINE_END = new Failure(400, 'A line of the request must end in CR and LF');
const BAD_FIELD = new Failure(400, 'A header is malformed');
const HEAD_TOO_LARGE = new Failure(431, 'The request line and headers are too large');
const BAD_LENGTH = new Failure(400, 'Content-Length must be one number, without Transfer-Encoding');
const BAD_CODING = new Failure(400, 'Transfer-Encoding must be chunked, once, without Content-Length');
const CODING_OF_1_0 = new Failure(400, 'An HTTP/1.0 request must not have Transfer-Encoding');
const BAD_CHUNK_SIZE = new Failure(400, 'The size of a chunk of the body is malformed');
const BAD_CHUNK_END = new Failure(400, 'A chunk of the body does not end where its size says');
const FRAMING_TOO_LARGE = new Failure(413, 'The sizes, extensions and trailers of the chunks are too large');

type Phase = 'head' | 'content' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers';

/**
 * Finds where the requests of one connection begin and end, before Node's parser does and strictly by RFC 9112. Node's
 * parser also accepts other protocols, and blanks and line ends that the grammar does not have, and it obeys trailers.
 * It gets only bytes that every other reader, such as a gateway, reads in the same way.
 *
 * Chunks are joined: Node sees one for each piece that is read here, no matter how small the client cut them. Trailers
 * are dropped, as RFC 9110 section 6.5.1 allows.
 */
export class Framing {
  /** What {@link read} left unread. */
  rest: Buffer | undefined;
  #phase: Phase = 'head';
  /** The start of a head whose end has not arrived, without empty lines before it. */
  #partialHead: Buffer | undefined;
  /**
   * The last valid head and the length of its body. Most clients send the same head again and again; to check it each
   * time takes a create 7 % more CPU.
   */
  #knownHead = '';
  #knownLength = 0;
  /** How many bytes of the content or of the chunk are missing. */
  #remaining = 0;
  #line = '';
  /** Bytes of this body that are not content. */
  #chunkFraming = 0;

  /** @param bodyLimit the largest body in bytes. The framing of its chunks has the same limit. */
  constructor(private readonly bodyLimit: number) {}

  /** Whether the last request has arrived completely, and nothing of a next one. */
  get isBetweenRequests(): boolean {
    return this.#phase === 'head' && this.#partialHead === undefined;
  }

  /** Whether a part of a head has arrived. */
  get isInHead(): boolean {
    return this.#partialHead !== undefined;
  }

  /** How many bytes of the body are missing. Infinity if it is chunked. */
  get remaining(): number {
    if (this.#phase === 'head') return 0;
    return this.#phase === 'content' ? this.#remaining : Infinity;
  }

  /**
   * Reads at most to the end of a head or of a request. The rest stays in {@link rest}.
   *
   * @param bytes what arrived. It may be changed in place.
   * @returns the bytes for Node's parser, if any.
   * @throws {Failure} if it is not HTTP/1.1 or HTTP/1.0. Nothing that follows can be read then.
   */
  read(bytes: Buffer): Buffer | undefined {
    this.rest = undefined;
    if (this.#phase === 'head') return this.#readHead(bytes);
    if (this.#phase === 'content') return this.#readContent(bytes, 0);
    return this.#readChunks(bytes);
  }

  #readHead(read: Buffer): Buffer | undefined {
    let bytes = this.#partialHead === undefined ? read : Buffer.concat([this.#partialHead, read]);
    // RFC 9112 section 2.2: a server should ignore empty lines before a request.
    let start = 0;
    while (bytes[start] === 13 && bytes[start + 1] === 10) start += 2;
    if (start > 0) bytes = bytes.subarray(start);
    const end = bytes.indexOf('\r\n\r\n') + 4;
    if (end < 4 || end > MAX_HEAD) {
      if (bytes.length > MAX_HEAD) throw HEAD_TOO_LARGE;
      checkPartialHead(bytes.toString('latin1'));
      this.#partialHead = bytes.length === 0 ? undefined : bytes;
      return undefined;
    }
    this.#partialHead = undefined;
    const head = bytes.toString('latin1', 0, end);
    const length = head === this.#knownHead ? this.#knownLength : this.#checkHead(head, bytes);
    if (length === CHUNKED) {
      this.#phase = 'chunk size';
      this.#chunkFraming = 0;
      if (bytes.length > end) this.rest = bytes.subarray(end);
      return bytes.length > end ? bytes.subarray(0, end) : bytes;
    }
    this.#remaining = length;
    return this.#readContent(bytes, end);
  }

  /** @returns the length of the body, or CHUNKED. */
  #checkHead(head: string, bytes: Buffer): number {
    const lineEnd = head.indexOf(LINE_END);
    const isOld = checkRequestLine(head.slice(0, lineEnd)) === '1.0';
    if (!FIELD_LINES.test(head.slice(lineEnd + 2, -2))) throw BAD_FIELD;

    let length: number | undefined;
    let isRewritten = false;
    FRAMING_FIELD.lastIndex = 0;
    for (let field = FRAMING_FIELD.exec(head); field !== null; field = FRAMING_FIELD.exec(head)) {
      const valueStart = FRAMING_FIELD.lastIndex;
      if (field[1]?.length === 'upgrade'.length) {
        // RFC 9110 section 7.8: a server may ignore it. Node's parser would take what follows for the other protocol.
        bytes.write('x', field.index, 'latin1');
        isRewritten = true;
        continue;
      }
      const isLength = field[1]?.length === 'content-length'.length;
      if (length !== undefined) throw isLength ? BAD_LENGTH : BAD_CODING;
      if (!isLength && isOld) throw CODING_OF_1_0;
      const value = isLength ? LENGTH_VALUE : CHUNKED_VALUE;
      value.lastIndex = valueStart;
      const found = value.exec(head);
      if (found === null) throw isLength ? BAD_LENGTH : BAD_CODING;
      length = isLength ? Number(found[1]) : CHUNKED;
      // RFC 9110 section 5.6.3 allows tabs around a value. Some versions of Node's parser do not.
      if (found[0].includes('\t')) {
        bytes.fill(' ', valueStart, value.lastIndex - 2);
        bytes.write(found[0].trim(), valueStart, 'latin1');
        isRewritten = true;
      }
    }
    if (!isRewritten && head.length <= MAX_KNOWN_HEAD) {
      this.#knownHead = head;
      this.#knownLength = length ?? 0;
    }
    return length ?? 0;
  }

  /** @param start where the content starts in the bytes. What precedes it is returned too. */
  #readContent(bytes: Buffer, start: number): Buffer {
    const end = start + this.#remaining;
    if (bytes.length < end) {
      this.#phase = 'content';
      this.#remaining = end - bytes.length;
      return bytes;
    }
    this.#phase = 'head';
    if (bytes.length === end) return bytes;
    this.rest = bytes.subarray(end);
    return bytes.subarray(0, end);
  }

  #readChunks(bytes: Buffer): Buffer | undefined {
    const joined = Buffer.allocUnsafe(SIZE_LINE + bytes.length + LINE_END.length + LAST_CHUNK.length);
    let length = SIZE_LINE;
    let at = 0;
    while (at < bytes.length && this.#phase !== 'head') {
      if (this.#phase === 'chunk') {
        const end = Math.min(at + this.#remaining, bytes.length);
        length += bytes.copy(joined, length, at, end);
        this.#remaining -= end - at;
        if (this.#remaining === 0) this.#phase = 'chunk end';
        at = end;
      } else {
        const end = bytes.indexOf(LINE_FEED, at) + 1 || bytes.length;
        this.#line += bytes.toString('latin1', at, end);
        this.#chunkFraming += end - at;
        if (
          this.#line.length > MAX_CHUNK_LINE ||
          this.#chunkFraming > Math.max(this.bodyLimit, MIN_CHUNK_FRAMING)
        )
          throw FRAMING_TOO_LARGE;
        at = end;
        if (this.#line.endsWith('\n')) this.#takeLine();
      }
    }
    const isLast = this.#phase === 'head';
    if (at < bytes.length) this.rest = bytes.subarray(at);
    if (length > SIZE_LINE) {
      joined.write((length - SIZE_LINE).toString(16).padStart(SIZE_LINE - 2, '0') + LINE_END, 'latin1');
      length += joined.write(LINE_END, length, 'latin1');
    } else if (!isLast) return undefined;
    if (isLast) joined.write(LAST_CHUNK, length, 'latin1');
    return joined.subarray(
      length === SIZE_LINE ? SIZE_LINE : 0,
      isLast ? length + LAST_CHUNK.length : length,
    );
  }

  #takeLine(): void {
    const line = this.#line;
    this.#line = '';
    if (this.#phase === 'chunk size') {
      const size = CHUNK_SIZE.exec(line)?.[1];
      if (size === undefined) throw BAD_CHUNK_SIZE;
      this.#remaining = parseInt(size, 16);
      this.#phase = this.#remaining === 0 ? 'trailers' : 'chunk';
    } else if (this.#phase === 'chunk end') {
      if (line !== LINE_END) throw BAD_CHUNK_END;
      this.#phase = 'chunk size';
    } else if (line === LINE_END) {
      this.#phase = 'head';
    } else {
      if (!FIELD_LINES.test(line)) throw BAD_FIELD;
      if (FRAMING_TRAILER.test(line)) throw BAD_LENGTH;
    }
  }
}

/** @returns the version of HTTP: 1.0 or 1.1. */
function checkRequestLine(line: string): string {
  const [method = '', target, version, ...more] = line.split(' ');
  if (!KNOWN_METHODS.has(method)) throw UNKNOWN_METHOD;
  if (target === undefined || target === '' || version === undefined || more.length > 0) throw MALFORMED_LINE;
  if (method === 'CONNECT') throw TUNNEL;
  if (!TARGET.test(target)) throw BAD_TARGET;
  if (version !== 'HTTP/1.1' && version !== 'HTTP/1.0')
    throw /^HTTP\/\d\.\d$/.test(version) ? BAD_VERSION : MALFORMED_LINE;
  return version.slice(-3);
}

/** Refuses at once what cannot become a valid head, so that a client of another protocol need not wait for it. */
function checkPartialHead(head: string): void {
  const linesEnd = head.lastIndexOf('\n') + 1;
  if (linesEnd === 0) {
    const methodEnd = head.indexOf(' ');
    const isMethod =
      methodEnd < 0
        ? METHODS.some((method) => method.startsWith(head))
        : KNOWN_METHODS.has(head.slice(0, methodEnd));
    // Only half of an empty line before the request may have arrived.
    if (!isMethod && head !== '\r') throw UNKNOWN_METHOD;
    return;
  }
  const lineEnd = head.indexOf('\n') - 1;
  if (head[lineEnd] !== '\r') throw BAD_LINE_END;
  checkRequestLine(head.slice(0, lineEnd));
  if (!FIELD_LINES.test(head.slice(lineEnd + 2, linesEnd))) throw BAD_FIELD;
}
