import { describeCrashes } from "./matrix.js";

describeCrashes("lookup");
