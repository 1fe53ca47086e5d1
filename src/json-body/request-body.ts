import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { MIMEType, promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, type CompressCallback } from 'node:zlib';
import { Failure, RequestAborted } from '../errors/failure.js';

type Decode = (
  coded: Buffer,
  options: { maxOutputLength: number; info: true },
  callback: CompressCallback,
) => void;

/** RFC 9110 section 8.4.1; `x-gzip` is to be taken as `gzip`. */
const CONTENT_CODINGS = new Map<string, Decode>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
]);

const ACCEPT_ENCODING = 'gzip, deflate, br';

const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Reads the text of a JSON request: media type, size, content coding and UTF-8 are checked in this order, and nothing
 * is read of a body whose header already refuses it.
 *
 * @param limit the largest body in bytes, as sent and after decoding.
 * @param onRead called before the first byte is read.
 * @returns the text, without a byte order mark (which RFC 8259 section 8.1 lets a reader ignore).
 * @throws {Failure} 415 for a media type, charset or content coding that is not taken, 413 beyond the limit, 400 for
 *   bytes that the coding or UTF-8 does not allow.
 * @throws {RequestAborted} if the client went away.
 */
export async function readJsonText(
  request: IncomingMessage,
  limit: number,
  onRead: () => void,
): Promise<string> {
  checkMediaType(request.headers['content-type']);
  const coding = request.headers['content-encoding']?.trim().toLowerCase();
  const decode =
    coding === undefined || coding === '' || coding === 'identity' ? undefined : CONTENT_CODINGS.get(coding);
  if (decode === undefined && coding !== undefined && coding !== '' && coding !== 'identity') {
    throw unsupported(`Content-Encoding must be one of ${ACCEPT_ENCODING}, and only one`);
  }
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limit) throw tooLarge(limit);
  onRead();
  let body = await readBytes(request, announced, limit);
  if (decode !== undefined) body = await decodeBytes(body, decode, limit);
  if (!isUtf8(body)) throw new Failure(400, 'The body is not UTF-8 text');
  const text = body.toString('utf8');
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

function checkMediaType(contentType: string | undefined): void {
  if (contentType === 'application/json') return;
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  if (mediaType?.essence !== 'application/json') {
    throw unsupported('Content-Type must be application/json');
  }
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

function readBytes(request: IncomingMessage, announced: number, limit: number): Promise<Buffer> {
  // Most bodies come together with their header. What is there already needs no listeners; resumed, the request ends.
  if (announced > 0 && request.readableLength === announced) {
    const body = request.read() as Buffer;
    request.resume();
    return Promise.resolve(body);
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (error?: Error) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      if (error !== undefined) reject(error);
      else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) settle(tooLarge(limit));
      else chunks.push(chunk);
    };
    const onEnd = () => settle();
    const onClose = () => settle(new RequestAborted());
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

async function decodeBytes(coded: Buffer, decode: Decode, limit: number): Promise<Buffer> {
  try {
    const { buffer, engine } = (await promisify(decode)(coded, {
      maxOutputLength: limit,
      info: true,
    })) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    if (engine.bytesWritten === coded.length) return buffer;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
  }
  throw new Failure(400, 'The body is not what its Content-Encoding says');
}

function tooLarge(limit: number): Failure {
  return new Failure(413, `The body must be at most ${limit} bytes`);
}

/** RFC 9110 section 15.5.16: a 415 says what would have been taken. */
function unsupported(message: string): Failure {
  return new Failure(415, message, {
    headers: { Accept: 'application/json', 'Accept-Encoding': ACCEPT_ENCODING },
  });
}
