import { QueryFailedError } from 'typeorm';

/** SQLSTATE classes whose messages may repeat a value: data exception, constraint and view violation, a trigger's own. */
const MAY_REPEAT_VALUES = /^(22|23|44|P0)...$/;
/** An address in a text, but no file's, whose path is no secret. */
const ADDRESS = /\b(?!file:)[a-z][a-z\d+.-]*:\/\/[^\s"'<>]*/gi;

/**
 * What the logs tell of an error: its type, message, stack and causes, of a database error the SQLSTATE and the
 * constraint. Never what else hangs on it: TypeORM and pg attach the statement, its values and the row that failed.
 */
export function serializeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  if (error instanceof QueryFailedError) return serializeError(error.driverError);
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const mayRepeatValues = typeof code === 'string' && MAY_REPEAT_VALUES.test(code);
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    ...(typeof constraint === 'string' && { constraint }),
    message: mayRepeatValues ? 'left out, since it may repeat a value' : withoutSecrets(error.message),
    ...(!mayRepeatValues && error.stack !== undefined && { stack: withoutSecrets(error.stack) }),
    ...(error.cause !== undefined && { cause: serializeError(error.cause) }),
  };
}

/**
 * The message of a library may repeat an address that was configured.
 *
 * @returns the text with the user, the password, the query and the fragment of each address in it left out.
 */
export function withoutSecrets(text: string): string {
  return text.replace(ADDRESS, (address) => {
    if (!URL.canParse(address)) return '[address]';
    const { protocol, host, pathname } = new URL(address);
    return `${protocol}//${host}${pathname}`;
  });
}
