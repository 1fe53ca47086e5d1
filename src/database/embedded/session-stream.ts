import { Duplex } from 'node:stream';
import type { PGlite } from '@electric-sql/pglite';

/** PostgreSQL's wire protocol to PGlite and back, with as much of `net.Socket` as `pg` calls. */
export class SessionStream extends Duplex {
  constructor(private readonly database: PGlite) {
    super();
  }

  connect(): this {
    // All sessions share one backend, one after the other. It does not notice the end of a session, so a transaction
    // that was left open would swallow what the next session writes.
    this.database.exec('ROLLBACK; DEALLOCATE ALL').then(
      () => this.emit('connect'),
      (error: unknown) => this.destroy(error as Error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // The answers are pushed as they come.
  }

  override _write(message: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    // PGlite holds up the event loop until the commit is on the disk. Requests that have arrived by now are read first,
    // so that they wait together and share the next commit.
    setImmediate(() => {
      this.database.execProtocolRaw(message).then(
        (answer) => {
          this.push(Buffer.from(answer));
          done();
        },
        (error: unknown) => done(error as Error),
      );
    });
  }

  override _writev(messages: { chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(messages.map(({ chunk }) => chunk)), 'binary', done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }
}
