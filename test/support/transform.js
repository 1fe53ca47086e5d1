import { createHash } from 'node:crypto';
import ts from 'typescript';

/** As tsconfig.json has it, but for modules, since Jest alone decides what is one. */
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile('tsconfig.json', ts.sys.readFile).config,
  ts.sys,
  '.',
);
const compilerOptions = {
  ...options,
  module: ts.ModuleKind.ES2022,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  inlineSourceMap: true,
  inlineSources: true,
};
const fingerprint = JSON.stringify([ts.version, process.version, compilerOptions]);

/** A Jest transformer: strips types and compiles decorators with the compiler that builds `dist`, file by file. */
export default {
  getCacheKey: (source, path) =>
    createHash('sha256').update(`${fingerprint}\0${path}\0${source}`).digest('hex'),
  process: (source, path) => ({
    code: ts.transpileModule(source, { compilerOptions, fileName: path }).outputText,
  }),
};
