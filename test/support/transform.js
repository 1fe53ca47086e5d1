import { createHash } from 'node:crypto';
import ts from 'typescript';

/** The options of tsconfig.json, except for modules: Jest decides which files are ES modules. */
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

/** A Jest transformer: compiles each file alone, with the compiler that builds `dist`. */
export default {
  getCacheKey: (source, path) =>
    createHash('sha256').update(`${fingerprint}\0${path}\0${source}`).digest('hex'),
  process: (source, path) => ({
    code: ts.transpileModule(source, { compilerOptions, fileName: path }).outputText,
  }),
};
