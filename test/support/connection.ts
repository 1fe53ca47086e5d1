import { connect } from 'node:net';
import { PATIENCE_MS } from './patience.js';
import { parseAnswer, type Answer, type Bytes } from './requests.js';

/**
 * Writes the bytes to a new connection and reads until the service ends its side.
 *
 * @param options.thenEnd ends the client's side too, after the last byte.
 * @returns all responses, in order.
 * @throws if the connection is reset, or never ends.
 */
export function converse(port: number, parts: Bytes[], options: { thenEnd?: true } = {}): Promise<Answer[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('not ended')));
    socket.on('connect', () => {
      for (const part of parts) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
      if (options.thenEnd) socket.end();
    });
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      socket.destroy();
      resolve(splitAnswers(Buffer.concat(chunks)));
    });
  });
}

function splitAnswers(received: Buffer): Answer[] {
  const answers: Answer[] = [];
  for (let start = 0, end: number; start < received.length; start = end) {
    const bodyStart = received.indexOf('\r\n\r\n', start) + 4;
    const head = received.subarray(start, bodyStart).toString('latin1');
    end = bodyStart + Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    answers.push(parseAnswer(received.subarray(start, end)));
  }
  return answers;
}
