import { DatabaseFault, isCertificateRefused } from './database/errors.js';
import { FolderHeldError } from './database/embedded/folder-lock.js';
import { withoutSecrets } from './logging/serialize-error.js';

/** What to do about an error at the start, by its `code`: a system call's or a SQLSTATE (PostgreSQL, appendix A). */
const ADVICE: Record<string, string> = {
  EADDRNOTAVAIL: 'set HOST to an address of this machine',
  ENOTFOUND: 'set HOST to an address of this machine',
  EAI_AGAIN: 'set HOST to an address of this machine',
  EROFS: 'set DATA_DIR to a folder that can be written, or DATABASE_URL to a server',
  '3D000': 'create it (createdb), or correct DATABASE_URL',
  '28000': 'correct the user and the password in DATABASE_URL, or the rules of the server',
  '28P01': 'correct the user and the password in DATABASE_URL',
  '42501': 'migrate as a user who may (npm run db:migrate), and start with MIGRATIONS=off',
};

/** What Node.js says of a failed system call. It has an address only if that was to listen. */
type SystemError = NodeJS.ErrnoException & { address?: string; port?: number };

/** @returns one sentence that says what is wrong and, if known, what to do about it. */
export function startFailure(error: unknown): string {
  const [fault, advice] = diagnose(error);
  return `Plant Store could not start: ${fault}${advice === undefined ? '' : `; ${advice}`}.\n`;
}

function diagnose(error: unknown): [fault: string, advice?: string | undefined] {
  if (!(error instanceof Error)) return [String(error)];
  if (error instanceof DatabaseFault && error.cause !== undefined) return diagnose(error.cause);
  const fault = withoutSecrets(error.message);
  if (error instanceof FolderHeldError)
    return [
      fault,
      'stop that one, set DATA_DIR to another folder, or point both at a server with DATABASE_URL',
    ];
  if (isCertificateRefused(error))
    return [
      `the database's certificate is refused: ${fault}`,
      'name its issuer by sslrootcert in DATABASE_URL, or write the host name as it is in the certificate',
    ];
  if (/^SASL: .*client password/.test(fault))
    return ['the database asks for a password', 'set it in DATABASE_URL'];
  const { code = '', syscall, address, port } = error as SystemError;
  if (syscall === 'listen' && code === 'EADDRINUSE')
    return [
      `port ${port} of ${address} is in use, perhaps by a Plant Store that was started before`,
      'stop what uses it, or set another (PORT, METRICS_PORT)',
    ];
  if (syscall === 'listen' && code === 'EACCES')
    return [`port ${port} is for privileged users only`, 'set PORT to 1024 or more'];
  if (code === 'EACCES') return [fault, ADVICE.EROFS];
  return [fault, ADVICE[code]];
}
