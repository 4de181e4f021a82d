/**
 * Artifacts in S3 and what speaks its protocol. Needs `@aws-sdk/client-s3` and `@aws-sdk/lib-storage` beside this package.
 *
 * @module
 */
export { type S3ArtifactOptions, s3Artifacts } from "./artifacts.js";
