import { connect } from 'node:net';
import { PATIENCE_MS } from './patience.js';
import { TOKEN } from './service.js';

export interface Answer {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string>;
  text: string;
  json: unknown;
}

/** Bytes for a socket; a string is Latin-1, or UTF-8 if it is a body. */
export type Bytes = string | Uint8Array;

/** `POST /plants` with a good token and JSON headers; `headers` adds to them, replaces them, or (undefined) removes them. */
export function post(
  port: number,
  body: Bytes,
  headers: Record<string, string | undefined> = {},
  path = '/plants',
): Promise<Answer> {
  const bytes = Buffer.from(body as string);
  const all: Record<string, string | undefined> = {
    Host: 'localhost',
    Authorization: `Bearer ${TOKEN}`,
    'Content-Type': 'application/json',
    'Content-Length': String(bytes.length),
    Connection: 'close',
    ...headers,
  };
  const head = Object.entries(all)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value ?? ''}\r\n`)
    .join('');
  return exchange(port, [`POST ${path} HTTP/1.1\r\n${head}\r\n`, bytes]);
}

/**
 * Writes the bytes to a new connection and reads one response.
 *
 * @throws if the connection ends without a whole response.
 */
export async function exchange(port: number, parts: Bytes[]): Promise<Answer> {
  const received = await readUntilDone(port, parts);
  return parseAnswer(received);
}

function readUntilDone(port: number, parts: Bytes[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no response')));
    socket.on('connect', () => {
      for (const part of parts) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
    });
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (isWhole(Buffer.concat(chunks))) socket.destroy();
    });
    socket.on('error', (error) => (chunks.length > 0 ? resolve(Buffer.concat(chunks)) : reject(error)));
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

function isWhole(received: Buffer): boolean {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /^content-length: (\d+)$/im.exec(received.subarray(0, end).toString('latin1'))?.[1];
  return length !== undefined && received.length >= end + 4 + Number(length);
}

export function parseAnswer(received: Buffer): Answer {
  const end = received.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = received.subarray(0, end).toString('latin1').split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1];
  if (end < 0 || status === undefined) throw new Error(`no HTTP response: ${received.toString('latin1')}`);
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const text = received.subarray(end + 4).toString('utf8');
  return {
    status: Number(status),
    headers,
    text,
    json: text !== '' && headers['content-type']?.includes('json') ? JSON.parse(text) : undefined,
  };
}

/** Expects an answer with this status and the contract's Error body, with nothing else in it. */
export function expectError(answer: Answer, status: number, error = status): void {
  expect({ status: answer.status, json: answer.json }).toEqual({
    status,
    json: { error, message: expect.stringMatching(/^[A-Z\p{L}].*\.$/su) as string },
  });
  expect(answer.headers['content-type']).toBe('application/json');
}
