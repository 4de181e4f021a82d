import { describeCrashes } from "./matrix.js";

describeCrashes("idempotent");
